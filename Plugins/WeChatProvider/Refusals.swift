internal import MartletCore
internal import MartletProvider

/// Why a login with WeChat fails before or after WeChat was asked; what WeChat itself says is in ``WeChatFault``.
extension AuthenticationError {
    /// The code is not 1 to 128 letters, digits, `_` and `-`.
    static let badCode = AuthenticationError.rejected("wechat.bad_code")
    /// The code was sent to WeChat before: by another post, from elsewhere, or too long ago.
    static let codeReused = AuthenticationError.rejected("wechat.code_reused")
    /// WeChat's openid or unionid is not written as such.
    static let badIdentity = AuthenticationError.rejected("wechat.bad_identity")
    /// A pretended user that WeChat shows to pages until somebody presses "use full service".
    static let virtualUser = AuthenticationError.denied("wechat.virtual_user")
    /// The user did not grant what this variant needs.
    static let scopeMissing = AuthenticationError.rejected("wechat.scope_missing")
    /// The profile is somebody else's.
    static let identityMismatch = AuthenticationError.rejected("wechat.identity_mismatch")
    /// WeChat tells no unionid, and `account_key` wants one.
    static let unionIDMissing = AuthenticationError.rejected("wechat.unionid_missing")
    /// Data of a mini-program that is not signed, not readable, not this app's, not this user's, not fresh or not new.
    ///
    /// One reason for all of them: who can tell them apart can read what is encrypted.
    static let badData = AuthenticationError.rejected("wechat.bad_data")

    /// No entry of `apps` has the name, or the name is left out where there are several.
    static let unknownApp = AuthenticationError.malformed(
        "wechat.unknown_app", BodyError("app", .invalid, detail: "`app` is no entry of the provider's `apps`."))

    /// The code was sent, and nobody knows what came of it: only a new login helps.
    static let outcomeUnknown = AuthenticationError.unavailable("wechat.outcome_unknown")
    /// Too many codes are on their way; this one was not sent.
    static func overloaded(_ cause: HTTPCallError?) -> AuthenticationError {
        .unavailable("wechat.overloaded", cause: cause)
    }
    /// Too little time is left to ask WeChat.
    static let noTime = AuthenticationError.unavailable("wechat.no_time")
    /// The store that remembers used codes cannot be asked; without it no code is sent.
    static func storeUnavailable(_ cause: StoreError) -> AuthenticationError {
        .unavailable("wechat.store_unavailable", cause: cause)
    }
}
