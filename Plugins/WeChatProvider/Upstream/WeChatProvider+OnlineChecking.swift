internal import MartletConfig
public import MartletCore
public import MartletProvider

extension WeChatProvider: OnlineChecking {
    /// Sends a made-up code for each application: WeChat looks at the id and the secret first, and refuses the code last.
    ///
    /// No code of a person's is used up by it. What the application may do beyond that shows only at a login.
    public func checkOnline(until deadline: MonotonicTime) async -> [CheckVerdict] {
        let endpoints = WeChatEndpoints(configuration.baseURL.value)
        var verdicts: [CheckVerdict] = []
        for app in configuration.apps {
            var failure: ErrorCode?
            var detail = "WeChat accepts the app_id and the app_secret; permissions show only at a login"
            do throws(AuthenticationError) {
                try await client.ask(
                    app.variant == .miniProgram ? .jscode2session : .exchange,
                    endpoints.exchange(Self.madeUpCode, of: app), for: app.clientName, until: deadline
                ) { _ in () }
                failure = "wechat.upstream_bad_answer"
                detail = "WeChat accepted a made-up code: base_url does not lead to WeChat"
            } catch  where error.disposition == .rejected {
            } catch {
                failure = error.code
                detail = Self.explanation(of: error)
            }
            verdicts.append(CheckVerdict(check: "app '\(app.clientName)'", failure: failure, detail: detail))
        }
        return verdicts
    }

    /// Of the form that codes have, and of no meaning.
    private static let madeUpCode = Array("martlet-check-online-no-code".utf8)

    private static func explanation(of error: AuthenticationError) -> String {
        switch error.code {
        case "wechat.upstream_bad_secret": "WeChat refuses the app_secret"
        case "wechat.upstream_bad_app_id": "WeChat does not know the app_id"
        case "wechat.upstream_bad_address": "WeChat does not accept calls from this machine's address"
        case "wechat.upstream_unreachable":
            "base_url does not answer: \((error.cause as? HTTPCallError)?.message ?? "no connection")"
        default: "WeChat did not say whether it accepts the app_secret"
        }
    }
}
