import com.tencent.mm.opensdk.modelbase.BaseReq
import com.tencent.mm.opensdk.modelmsg.SendAuth
import com.tencent.mm.opensdk.openapi.IWXAPI
import java.net.HttpURLConnection
import java.net.URL
import java.util.concurrent.LinkedBlockingQueue
import java.util.concurrent.TimeUnit
import org.json.JSONObject

fun show(what: String, text: String) = println(what + ": " + text.replace("\n", " "))

fun android(gateway: Gateway, base: String) {
    gateway.login("ada", "correct horse battery")
    show("api", gateway.get("/orders"))

    // An access token that is not valid any more makes the client refresh it.
    Gateway::class.java.getDeclaredField("access").let { it.isAccessible = true; it.set(gateway, "mat_" + "A".repeat(43)) }
    show("refreshed", gateway.get("/orders"))
    try {
        Gateway(base).login("ada", "wrong")
    } catch (rejected: Gateway.Rejected) {
        show("rejected", rejected.status.toString() + " " + rejected.code)
    }
}

fun tabs(gateway: Gateway) {
    val activity = SignInActivity(gateway)
    activity.start(activity, "apple")
    for (attempt in 1..200) {
        try {
            return show("api", gateway.get("/orders"))
        } catch (rejected: Gateway.Rejected) {
            Thread.sleep(50)
        }
    }
}

fun wechat(base: String) {
    val received = LinkedBlockingQueue<String>()
    val activity = WeChatActivity(received, object : IWXAPI {
        // WeChat's app: asks the user, and returns a code with the same state.
        override fun sendReq(request: BaseReq): Boolean {
            val body = """{"app_id": "wx0000000000000001", "person": "Ada"}"""
            val response = SendAuth.Resp()
            response.state = (request as SendAuth.Req).state
            response.code = JSONObject(post(System.getenv("SIMULATOR") + "/simulator/code", body)).getString("code")
            WeChatActivity.last!!.onResp(response)
            return true
        }
    })
    WeChatActivity.last = activity
    activity.signIn()
    val tokens = received.poll(20, TimeUnit.SECONDS) ?: return
    show("api", Gateway(base, JSONObject(tokens).getString("access_token")).get("/orders"))
}

fun post(url: String, body: String): String {
    val connection = URL(url).openConnection() as HttpURLConnection
    connection.setRequestProperty("Content-Type", "application/json")
    connection.doOutput = true
    connection.outputStream.use { it.write(body.toByteArray()) }
    return connection.inputStream.bufferedReader().readText()
}

fun main(arguments: Array<String>) {
    val base = System.getenv("GATEWAY")
    when (arguments[0]) {
        "android" -> android(Gateway(base), base)
        "tabs" -> tabs(Gateway(base))
        else -> wechat(base)
    }
    System.exit(0)
}
