package android.net

import java.net.URI
import java.net.URLDecoder
import java.net.URLEncoder

class Uri private constructor(private val text: String) {
    class Builder(private var text: String) {
        fun appendQueryParameter(name: String, value: String): Builder {
            text += (if ('?' in text) "&" else "?") + encoded(name) + "=" + encoded(value)
            return this
        }

        fun build() = Uri(text)
        private fun encoded(value: String) = URLEncoder.encode(value, "UTF-8").replace("+", "%20")
    }

    fun buildUpon() = Builder(text)

    fun getQueryParameter(name: String): String? = (URI(text).rawQuery ?: "").split("&")
        .map { it.split("=", limit = 2) }.firstOrNull { it[0] == name }?.getOrNull(1)?.let { URLDecoder.decode(it, "UTF-8") }

    override fun toString() = text

    companion object {
        fun parse(text: String) = Uri(text)
    }
}
