internal import MartletCore

/// A session that a token has proved.
package struct ProvenSession: Sendable {
    package let principal: Principal
    /// What revocations call it; two sessions share a number only by a chance of 1 in 2⁶⁴, which costs a look-up.
    package let number: UInt64
    /// How long a loop may trust its own copy, from when the store was asked.
    package let copyLifetime: Duration
    /// When the token ends, in milliseconds of Unix time: what is under way ends then.
    package let end: Int64

    /// - Parameter end: `nil` is the second in which the identity expires.
    package init(principal: Principal, number: UInt64, copyLifetime: Duration, end: Int64? = nil) {
        self.principal = principal
        self.number = number
        self.copyLifetime = copyLifetime
        self.end = end ?? principal.identity.expiresAt.milliseconds
    }
}

/// Judges session tokens by the store.
package protocol SessionJudging: Sendable {
    /// What every access token begins with: `mat_`.
    static var accessPrefix: String { get }
    /// - Throws: `rejected` for a token that is no live session's, `unavailable` when the store cannot tell.
    func judge(
        _ token: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError)
        -> ProvenSession
    /// Judges a token like ``judge(_:in:)`` and changes nothing: the session does not count as used.
    func inspect(
        _ token: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> ProvenSession
}

/// Finds the subject that stands for an identity: that of its account, which is made where there is none.
package protocol SubjectResolving: Sendable {
    /// - Throws: `unavailable` when the account store cannot tell.
    func subject(of identity: Identity, provider: String) async throws(AuthenticationError) -> String
    /// The subject of an identity that has one already; makes nothing.
    /// - Returns: `nil` where the first request would make an account.
    /// - Throws: `unavailable` when the account store cannot tell.
    func knownSubject(of identity: Identity, provider: String) async throws(AuthenticationError) -> String?
}
