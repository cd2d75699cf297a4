package import MartletCore
package import MartletCrypto

/// A sign-in that waits for a provider to send the browser back.
///
/// `state`, `nonce` and the PKCE verifier are derived from one random seed, so that an attempt fits into a cookie.
package struct SignInAttempt: Sendable {
    /// What the provider's proof is for.
    package enum Purpose: UInt8, Sendable, CaseIterable {
        case signIn = 0
        case link = 1
    }

    /// A session that the browser had when it began.
    ///
    /// The provider's way back may be a POST from its site, without the session's cookie.
    package struct Session: Sendable, Equatable {
        package let subject: String
        package let id: String

        package init(subject: String, id: String) {
            self.subject = subject
            self.id = id
        }
    }

    /// Where the flow ends.
    package enum Destination: Sendable, Equatable {
        /// The text of a ``ReturnTarget``; check it again, because the configuration may have changed.
        case page(String)
        case app(AppRequest)
    }

    /// How long an attempt can be completed.
    package static let lifetime = Duration.seconds(600)
    /// How long the cookie of an attempt that was completed is kept: the browser may send the same way back again.
    package static let repetition = Duration.seconds(10)
    /// The length of ``cookieID``.
    static let cookieIDLength = 16
    /// How far the clocks of instances may differ, in seconds.
    private static let clockSkew: Int64 = 60

    /// The longest name of a provider.
    static let maximumProviderBytes = 64
    static let seedLength = 32

    package let provider: String
    package let purpose: Purpose
    package let destination: Destination
    /// The session that a link is for, or that a sign-in replaces.
    package let session: Session?
    package let created: UnixTime
    let seed: Secret

    /// A new attempt.
    /// - Throws: `crypto.failure` when the system provides no entropy.
    package init(
        provider: String, purpose: Purpose, destination: Destination, session: Session? = nil, now: UnixTime
    ) throws(CryptoError) {
        self.init(
            provider: provider, purpose: purpose, destination: destination, session: session, created: now,
            seed: Secret(try RandomBytes.make(Self.seedLength)))
    }

    init(
        provider: String, purpose: Purpose, destination: Destination, session: Session?, created: UnixTime,
        seed: Secret
    ) {
        self.provider = provider
        self.purpose = purpose
        self.destination = destination
        self.session = session
        self.created = created
        self.seed = seed
    }

    /// The `state` of the provider's URL: 64 hexadecimal digits, because some providers change other characters.
    package var state: String { URLEscaping.hexadecimal(derived("state")) }

    /// The `nonce` of the provider's URL.
    package var nonce: String { Base64URL.encode(derived("nonce")) }

    /// The PKCE verifier of the gateway towards the provider (RFC 7636 §4.1).
    package var verifier: String { Base64URL.encode(derived("verifier")) }

    /// The PKCE challenge of the provider's URL, for `S256`.
    package var challenge: String { CodeChallenge(verifier: verifier).text }

    /// Names the attempt in the store, where its use is recorded: a browser may send an old cookie again.
    package var usedKey: String { URLEscaping.hexadecimal(derived("used")) }

    /// Names the attempt's cookie.
    package var cookieID: String {
        URLEscaping.hexadecimal(Array(derived("cookie").prefix(Self.cookieIDLength / 2)))
    }

    /// Checks that the attempt can be completed now.
    ///
    /// Clients are not shown which of the errors it was.
    /// - Throws: `browser.attempt_provider`, `browser.attempt_expired`.
    package func check(provider other: String, now: UnixTime) throws(BrowserError) {
        guard provider.hasSameBytes(as: other) else {
            throw BrowserError(.browserAttemptProvider, "the sign-in was started with another provider")
        }
        guard isCurrent(now) else {
            throw BrowserError(.browserAttemptExpired, "the sign-in was started too long ago")
        }
    }

    func isCurrent(_ now: UnixTime) -> Bool {
        now < created.advanced(bySeconds: Self.lifetime.components.seconds)
            && created <= now.advanced(bySeconds: Self.clockSkew)
    }

    private func derived(_ name: String) -> [UInt8] {
        HMACSHA256.authenticate(Array("martlet browser attempt \(name)".utf8), key: seed)
    }
}
