internal import MartletCore
internal import MartletProvider

/// The errors of a login apart from those that WeChat returns, which are in ``WeChatError``.
extension AuthenticationError {
    /// The code is not 1 to 128 letters, digits, `_` and `-`.
    static let badCode = AuthenticationError.rejected("wechat.bad_code")
    /// The code was sent to WeChat before: by another request, from another network or session, or too long ago.
    static let codeReused = AuthenticationError.rejected("wechat.code_reused")
    /// WeChat returned a malformed openid or unionid.
    static let badIdentity = AuthenticationError.rejected("wechat.bad_identity")
    /// A virtual user, which WeChat gives to pages until the user presses "use full service".
    static let virtualUser = AuthenticationError.denied("wechat.virtual_user")
    /// The user did not grant the scope that the variant needs.
    static let scopeMissing = AuthenticationError.rejected("wechat.scope_missing")
    /// The profile is another user's.
    static let identityMismatch = AuthenticationError.rejected("wechat.identity_mismatch")
    /// WeChat returned no unionid, and `account_key` requires one.
    static let unionIDMissing = AuthenticationError.rejected("wechat.unionid_missing")
    /// A mini-program's data is not signed, not readable, not this app's, not this user's, not fresh or not new.
    ///
    /// One code for all of them: telling them apart would be a decryption oracle.
    static let badData = AuthenticationError.rejected("wechat.bad_data")

    /// No entry of `apps` has the name, or the name is left out where there are several.
    static let unknownApp = AuthenticationError.malformed(
        "wechat.unknown_app", BodyError("app", .invalid, detail: "`app` is not an entry of the provider's `apps`."))

    /// The code was sent, but the outcome is unknown: the user has to log in again.
    static let outcomeUnknown = AuthenticationError.unavailable("wechat.outcome_unknown")
    /// Too many exchanges are in flight; the code was not sent.
    static func overloaded(_ cause: HTTPCallError?) -> AuthenticationError {
        .unavailable("wechat.overloaded", cause: cause)
    }
    /// Too little time is left for a call to WeChat.
    static let noTime = AuthenticationError.unavailable("wechat.no_time")
    /// The store of used codes is unavailable; without it no code is sent.
    static func storeUnavailable(_ cause: StoreError) -> AuthenticationError {
        .store(cause, as: "wechat.store_unavailable")
    }

    /// What the store returns.
    static func fromStore<Value>(
        _ value: @autoclosure () async throws(StoreError) -> Value
    ) async throws(AuthenticationError) -> Value {
        do throws(StoreError) { return try await value() } catch { throw storeUnavailable(error) }
    }

    /// The value of a key in the store; `nil` if there is none.
    static func value(for key: String, in store: any SharedStoring) async throws(AuthenticationError) -> [UInt8]? {
        switch await store.value(for: key) {
        case .found(let value): return value
        case .miss: return nil
        case .unavailable(let error): throw storeUnavailable(error)
        }
    }
}
