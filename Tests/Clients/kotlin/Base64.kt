package android.util

object Base64 {
    const val NO_PADDING = 1
    const val NO_WRAP = 2
    const val URL_SAFE = 8

    fun encodeToString(bytes: ByteArray, flags: Int): String {
        val encoder = if (flags and URL_SAFE != 0) java.util.Base64.getUrlEncoder() else java.util.Base64.getEncoder()
        return (if (flags and NO_PADDING != 0) encoder.withoutPadding() else encoder).encodeToString(bytes)
    }
}
