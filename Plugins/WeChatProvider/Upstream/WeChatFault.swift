internal import MartletCore
internal import MartletProvider

/// What one of WeChat's error codes means for whoever signs in.
struct WeChatFault: Sendable, Equatable {
    /// Whose turn it is.
    enum Class: String, Sendable {
        /// The code or the user is not good.
        case rejected
        /// The user is known and may not come in.
        case denied
        /// WeChat is busy; the client may begin again.
        case busy
        /// Too many calls.
        case limited
        /// Id, secret, address list or rights: the operator's.
        case configuration
        /// A call that should never have been made so.
        case fault
        /// A token that has just been given out is not good.
        case token
        /// Nobody has told what it means.
        case unknown
    }

    let kind: Class
    private let reason: ErrorCode
    private let retryAfter: Duration?

    /// What the client is told by.
    var error: AuthenticationError {
        switch kind {
        case .rejected: .rejected(reason)
        case .denied: .denied(reason)
        case .busy, .limited, .configuration, .fault, .token, .unknown:
            .unavailable(reason, retryAfter: retryAfter)
        }
    }

    /// The meaning of a code; every code has one.
    ///
    /// 40001 stands for a bad secret, and where there is none in the call, for a bad token.
    static func of(_ code: Int64, at call: WeChatClient.Call) -> WeChatFault {
        code == 40001 && call == .userinfo ? badToken : table[code] ?? unknown
    }

    private init(_ kind: Class, _ reason: ErrorCode, retryAfter: Duration? = nil) {
        self.kind = kind
        self.reason = reason
        self.retryAfter = retryAfter
    }

    private static let minute = Duration.seconds(60)
    private static let hour = Duration.seconds(3600)
    private static let unknown = WeChatFault(.unknown, "wechat.upstream_unknown")
    private static let badSecret = WeChatFault(.configuration, "wechat.upstream_bad_secret", retryAfter: minute)
    private static let badAddress = WeChatFault(.configuration, "wechat.upstream_bad_address", retryAfter: minute)
    private static let badCall = WeChatFault(.fault, "wechat.upstream_bad_call", retryAfter: minute)
    private static let badToken = WeChatFault(.token, "wechat.upstream_bad_token")
    private static let ended = WeChatFault(.rejected, "wechat.upstream_ended")
    private static let staleKey = WeChatFault(.rejected, "wechat.upstream_stale_session_key")

    /// WeChat's global error codes, as far as these calls can meet them.
    private static let table: [Int64: WeChatFault] = [
        -1: WeChatFault(.busy, "wechat.upstream_busy", retryAfter: .seconds(2)),
        40001: badSecret, 40125: badSecret,
        40002: badCall, 41001: badCall, 41002: badCall, 41003: badCall, 41004: badCall, 41008: badCall, 41009: badCall,
        43001: badCall, 43002: badCall, 43003: badCall,
        40003: WeChatFault(.rejected, "wechat.upstream_bad_openid"),
        40013: WeChatFault(.configuration, "wechat.upstream_bad_app_id", retryAfter: minute),
        40014: badToken, 42001: badToken,
        40029: WeChatFault(.rejected, "wechat.upstream_bad_code"),
        42003: WeChatFault(.rejected, "wechat.upstream_expired_code"),
        40163: WeChatFault(.rejected, "wechat.upstream_used_code"),
        40030: ended, 42002: ended, 42007: ended,
        40164: badAddress, 61004: badAddress,
        40226: WeChatFault(.denied, "wechat.upstream_blocked_user"),
        50002: WeChatFault(.denied, "wechat.upstream_limited_user"),
        50001: WeChatFault(.rejected, "wechat.upstream_no_consent"),
        45009: WeChatFault(.limited, "wechat.upstream_daily_quota", retryAfter: hour),
        45011: WeChatFault(.limited, "wechat.upstream_rate", retryAfter: minute),
        48001: WeChatFault(.configuration, "wechat.upstream_not_permitted", retryAfter: minute),
        48004: WeChatFault(.configuration, "wechat.upstream_banned_api", retryAfter: minute),
        87008: staleKey, 87009: staleKey,
    ]
}
