internal import MartletCore
internal import MartletJOSE
internal import MartletProvider

/// Why a token or a login is not accepted; the guide to OpenID Connect lists the codes.
struct OIDCError: CodedError {
    /// How the failure is handled.
    enum Kind: Sendable {
        /// The credential is invalid.
        case rejected
        /// A login does not have a member of this name.
        case incomplete(String)
        /// The key is not cached; a fetch may bring it. `nil` for that of a token that names none.
        case undecided(KeyID?)
        /// The client has used up its share of the store.
        case shareUsedUp
        /// The issuer or the store is unavailable, or refuses the gateway itself.
        case unavailable
        /// The issuer limits the rate of calls, with the pause that it asks for.
        case throttled(Duration?)
        /// The configuration does not have it.
        case notFound
    }

    let kind: Kind
    let code: ErrorCode
    /// For operators and `martlet explain`.
    let message: String

    init(_ kind: Kind, _ reason: String, _ message: String) {
        self.kind = kind
        code = ErrorCode(rawValue: "oidc.\(reason)")
        self.message = message
    }

    /// A check that all signed tokens have in common.
    init(_ error: TokenError) {
        kind =
            switch error.kind {
            case .rejected: .rejected
            case .undecided(let id): .undecided(id)
            case .unavailable: .unavailable
            }
        code = error.code
        message = error.message
    }

    /// What all signed tokens have in common.
    static func fromToken<Value>(_ value: @autoclosure () throws(TokenError) -> Value) throws(OIDCError) -> Value {
        do throws(TokenError) { return try value() } catch { throw OIDCError(error) }
    }

    /// A value that could not be stored or read.
    init(_ error: StoreError, _ message: String) {
        guard error.code == .storeShareUsedUp else {
            self = OIDCError(.unavailable, "store_unavailable", "\(message) [\(error.code)]")
            return
        }
        (kind, code) = (.shareUsedUp, error.code)
        self.message = "\(message) [\(error.code)]"
    }

    /// A signature that was not made with the only key of the issuer, which has just been fetched.
    init(rejectedAfterFetch error: OIDCError) {
        kind = .rejected
        code = error.code
        message = error.message
    }

    static func rejected(_ reason: String, _ message: String) -> OIDCError { OIDCError(.rejected, reason, message) }
    static func unavailable(_ reason: String, _ message: String) -> OIDCError {
        OIDCError(.unavailable, reason, message)
    }

    /// A result for the core, to which errors are those of any provider.
    static func result<Value>(
        _ value: @autoclosure () async throws(OIDCError) -> Value
    ) async throws(AuthenticationError) -> Value {
        do throws(OIDCError) { return try await value() } catch { throw error.authenticationError }
    }

    var authenticationError: AuthenticationError {
        switch kind {
        case .rejected: .rejected(code, cause: self)
        case .incomplete(let member): .malformed(code, BodyError(member, .missing))
        case .undecided, .unavailable: .unavailable(code, cause: self)
        case .shareUsedUp: .throttled(code, retryAfter: StoreError.shareRetryAfter)
        case .throttled(let pause): .unavailable(code, retryAfter: pause ?? .seconds(60), cause: self)
        case .notFound: AuthenticationError(code, .notFound, cause: self)
        }
    }
}
