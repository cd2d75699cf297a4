internal import MartletCore
internal import MartletProvider

/// The meaning of one of WeChat's error codes for a login.
struct WeChatError: Sendable, Equatable {
    /// Who or what caused the error.
    enum Kind: String, Sendable {
        /// The code or the user is invalid.
        case rejected
        /// The user is known but may not log in.
        case denied
        /// WeChat is busy; the client may retry with a new code.
        case busy
        /// Too many calls.
        case limited
        /// Id, secret, address list or permissions: the operator has to act.
        case configuration
        /// The call itself was invalid: a bug in this provider.
        case invalidCall
        /// A token that has just been issued is invalid.
        case token
        /// Not a documented code.
        case unknown
    }

    let kind: Kind
    private let reason: ErrorCode
    private let retryAfter: Duration?

    /// The error that the login fails with.
    var error: AuthenticationError {
        switch kind {
        case .rejected: .rejected(reason)
        case .denied: .denied(reason)
        case .busy, .limited, .configuration, .invalidCall, .token, .unknown:
            .unavailable(reason, retryAfter: retryAfter)
        }
    }

    /// The meaning of a code; undocumented codes are `unknown`.
    ///
    /// 40001 means an invalid secret, or an invalid token if the call contains no secret.
    static func of(_ code: Int64, at call: WeChatClient.Call) -> WeChatError {
        code == 40001 && call.hasToken ? badToken : table[code] ?? unknown
    }

    private init(_ kind: Kind, _ reason: ErrorCode, retryAfter: Duration? = nil) {
        self.kind = kind
        self.reason = reason
        self.retryAfter = retryAfter
    }

    private static let minute = Duration.seconds(60)
    private static let hour = Duration.seconds(3600)
    private static let unknown = WeChatError(.unknown, "wechat.upstream_unknown")
    private static let badSecret = WeChatError(.configuration, "wechat.upstream_bad_secret", retryAfter: minute)
    private static let badAddress = WeChatError(.configuration, "wechat.upstream_bad_address", retryAfter: minute)
    private static let badCall = WeChatError(.invalidCall, "wechat.upstream_bad_call", retryAfter: minute)
    static let badTokenReason: ErrorCode = "wechat.upstream_bad_token"
    private static let badToken = WeChatError(.token, badTokenReason)
    private static let ended = WeChatError(.rejected, "wechat.upstream_ended")
    private static let staleKey = WeChatError(.rejected, "wechat.upstream_stale_session_key")

    /// WeChat's global error codes that these calls can return.
    private static let table: [Int64: WeChatError] = [
        -1: WeChatError(.busy, "wechat.upstream_busy", retryAfter: .seconds(2)),
        40001: badSecret, 40125: badSecret,
        40002: badCall, 41001: badCall, 41002: badCall, 41003: badCall, 41004: badCall, 41008: badCall, 41009: badCall,
        43001: badCall, 43002: badCall, 43003: badCall,
        40003: WeChatError(.rejected, "wechat.upstream_bad_openid"),
        40013: WeChatError(.configuration, "wechat.upstream_bad_app_id", retryAfter: minute),
        40014: badToken, 42001: badToken,
        40029: WeChatError(.rejected, "wechat.upstream_bad_code"),
        42003: WeChatError(.rejected, "wechat.upstream_expired_code"),
        40163: WeChatError(.rejected, "wechat.upstream_used_code"),
        40030: ended, 42002: ended, 42007: ended,
        40164: badAddress, 61004: badAddress,
        40226: WeChatError(.denied, "wechat.upstream_blocked_user"),
        50002: WeChatError(.denied, "wechat.upstream_limited_user"),
        50001: WeChatError(.rejected, "wechat.upstream_no_consent"),
        45009: WeChatError(.limited, "wechat.upstream_daily_quota", retryAfter: hour),
        45011: WeChatError(.limited, "wechat.upstream_rate", retryAfter: minute),
        48001: WeChatError(.configuration, "wechat.upstream_not_permitted", retryAfter: minute),
        48004: WeChatError(.configuration, "wechat.upstream_banned_api", retryAfter: minute),
        87008: staleKey, 87009: staleKey,
    ]
}
