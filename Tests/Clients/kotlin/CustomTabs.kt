package androidx.browser.customtabs

import android.app.Activity
import android.content.Context
import android.content.Intent
import android.net.Uri
import java.net.HttpURLConnection
import java.net.URL

/** Opens the address in the test's browser, and delivers where it ends as the system delivers an intent. */
class CustomTabsIntent {
    class Builder {
        fun build() = CustomTabsIntent()
    }

    fun launchUrl(context: Context, url: Uri) {
        val connection = URL(System.getenv("BROWSER")).openConnection() as HttpURLConnection
        connection.doOutput = true
        connection.outputStream.use { it.write(url.toString().toByteArray()) }
        (context as Activity).onNewIntent(Intent(Uri.parse(connection.inputStream.bufferedReader().readText())))
    }
}
