package import MartletCore
package import MartletProvider
package import MartletSession

/// Calls without what most tests do not look at.
extension SessionStoring {
    /// Creates a session, and ends the subject's oldest sessions beyond `max_per_subject`.
    package func create(
        subject: String, provider: String, identity: Identity, client: SessionClient
    ) async throws(SessionError) -> IssuedTokens {
        try await create(
            subject: subject, provider: provider, identity: identity, client: client, evicting: true, mark: nil)
    }

    /// Exchanges a refresh token for a new pair of tokens.
    package func refresh(_ token: Secret, from address: [UInt8]) async throws(SessionError) -> IssuedTokens {
        try await refresh(token, provenBy: .none, from: address, reportingReuse: nil)
    }

    /// Exchanges the refresh token of a session that is not bound to a key.
    package func refresh(
        _ token: Secret, from address: [UInt8], reportingReuse reportReuse: EndReport?
    ) async throws(SessionError) -> IssuedTokens {
        try await refresh(token, provenBy: .none, from: address, reportingReuse: reportReuse)
    }
}
