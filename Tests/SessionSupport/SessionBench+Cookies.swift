package import MartletCore
package import MartletProvider
package import MartletSession

extension SessionBench {
    /// Makes a session with a cookie.
    package func cookieLogin(
        _ subject: String = "usr_ann", provider: String = "apple", client: SessionClient = SessionClient()
    ) async throws -> IssuedCookie {
        try await store.createCookie(
            subject: subject, provider: provider, identity: .ann, client: client, evicting: true, mark: nil)
    }

    /// Verifies a cookie token.
    package func use(
        _ cookie: Secret, from address: [UInt8] = []
    ) async throws(AuthenticationError) -> VerifiedSession {
        try await store.verify(Credential(cookie: cookie.copy), in: Self.context(address))
    }

    /// Verifies a cookie token, and changes nothing.
    package func inspect(_ cookie: Secret) async throws(AuthenticationError) -> VerifiedSession {
        try await store.inspect(Credential(cookie: cookie.copy), in: Self.context([]))
    }

    /// Replaces a cookie token, as after a privilege change.
    package func reissue(
        _ cookie: Secret, renewedBy proof: SessionProof? = nil
    ) async throws(SessionError) -> IssuedCookie {
        try await store.reissue(cookie, renewedBy: proof, from: [])
    }

    /// Why the store rejects a cookie token; `nil` if it accepts it.
    package func rejection(ofCookie cookie: Secret) async -> ErrorCode? {
        do {
            _ = try await use(cookie)
            return nil
        } catch {
            return error.code
        }
    }

    private static func context(_ address: [UInt8]) -> AuthenticationContext {
        AuthenticationContext(now: UnixTime(seconds: 0), deadline: .never, client: nil, address: address)
    }
}
