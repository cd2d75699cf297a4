internal import MartletBrowser
internal import MartletCore
internal import MartletCrypto
internal import MartletResponder

/// What a redirect to the account's page says in its URL so that the page renews the session's cookie: an identity was
/// linked by this session. Another site cannot make it, so that its links replace no cookie.
struct LinkProof: Sendable {
    private static let purpose = "linked"

    /// The id of the session.
    let session: String
    let call: BrowserCall

    /// - Throws: 503 without the shared key.
    func make() async throws(Failure) -> String {
        try await call.setup.secrets().forms.token(for: Self.purpose, browser: binding, now: call.now)
    }

    /// Whether a text was made for this session.
    /// - Throws: 503 without the shared key.
    func matches(_ text: String) async throws(Failure) -> Bool {
        let forms = try await call.setup.secrets().forms
        return (try? forms.check(text, for: Self.purpose, browser: binding, now: call.now)) != nil
    }

    /// The session in the form of a browser's cookie.
    private var binding: [UInt8] { Array(Base64URL.encode(SHA256.digest(Array(session.utf8))).utf8) }
}
