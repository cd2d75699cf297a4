internal import MartletConfig
public import MartletCore
public import MartletProvider

extension WeChatProvider: OnlineChecking {
    /// Sends a made-up code for each application: WeChat checks the id and the secret first, and rejects the code last.
    ///
    /// No user's code is consumed. The application's permissions show only at a login.
    public func checkOnline(until deadline: MonotonicTime) async -> [CheckOutcome] {
        let endpoints = WeChatEndpoints(configuration.baseURL.value)
        var results: [CheckOutcome] = []
        for app in configuration.apps {
            var failure: ErrorCode?
            var detail = "WeChat accepts the app_id and the app_secret; permissions show only at a login"
            do throws(AuthenticationError) {
                try await client.send(
                    app.variant == .miniProgram ? .jscode2session : .exchange,
                    endpoints.exchange(Self.madeUpCode, of: app), for: app.clientName, until: deadline
                ) { _ in () }
                failure = "wechat.upstream_bad_answer"
                detail = "WeChat accepted a made-up code: base_url is not WeChat's"
            } catch  where error.disposition == .rejected {
            } catch {
                failure = error.code
                detail = Self.explanation(of: error)
            }
            results.append(CheckOutcome(check: "app '\(app.clientName)'", failure: failure, detail: detail))
        }
        return results
    }

    /// Has the form of a code, but is none that WeChat issued.
    private static let madeUpCode = "martlet-check-online-no-code"

    private static func explanation(of error: AuthenticationError) -> String {
        switch error.code {
        case "wechat.upstream_bad_secret": "WeChat rejects the app_secret"
        case "wechat.upstream_bad_app_id": "WeChat does not know the app_id"
        case "wechat.upstream_bad_address": "WeChat does not accept calls from this machine's address"
        case "wechat.upstream_unreachable":
            "no response from base_url: \((error.cause as? HTTPCallError)?.message ?? "no connection")"
        default: "WeChat's response does not show whether it accepts the app_secret"
        }
    }
}
