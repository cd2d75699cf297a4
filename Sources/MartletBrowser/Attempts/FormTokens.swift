package import MartletCore
package import MartletCrypto

/// Tokens in the gateway's own forms, which show that a form was loaded by the browser that sends it.
///
/// A token is bound to a random cookie of the browser, to a purpose, and to an expiry.
package struct FormTokens: Sendable {
    /// How long a form may stay open.
    package static let lifetime = Duration.seconds(12 * 3600)
    private static let keyPurpose = "martlet browser forms 1"
    private static let expiryLength = 8

    private let key: Secret

    /// - Parameter key: a secret of at least 32 random bytes that all instances share; it may have other purposes, too.
    package init(key: Secret) {
        self.key = HKDFSHA256.derive(from: key, salt: [], purpose: Array(Self.keyPurpose.utf8), length: SHA256.length)
    }

    /// A new value for the browser's cookie, for one that has none.
    /// - Throws: `crypto.failure`.
    package static func newBrowser() throws(CryptoError) -> String { Base64URL.encode(try RandomBytes.make(32)) }

    /// Whether a cookie's value can be one of ``newBrowser()``.
    package static func isBrowser(_ value: [UInt8]) -> Bool { Base64URL.decode(value)?.count == 32 }

    /// The token of a form.
    /// - Parameters:
    ///   - purpose: which form; of one in a session, the session's id as well.
    ///   - browser: the value of the browser's cookie.
    package func token(for purpose: String, browser: [UInt8], now: UnixTime) -> String {
        let expiry = Self.bytes(of: now.advanced(bySeconds: Self.lifetime.components.seconds))
        return Base64URL.encode(expiry + code(purpose, browser, expiry))
    }

    /// Checks the token of a form that was sent.
    /// - Throws: `browser.form_token_invalid`, `browser.form_token_expired`.
    package func check(_ token: String, for purpose: String, browser: [UInt8], now: UnixTime) throws(BrowserError) {
        guard let bytes = Base64URL.decode(token), bytes.count == Self.expiryLength + SHA256.length,
            Self.isBrowser(browser)
        else { throw .formTokenInvalid }
        let expiry = Array(bytes[..<Self.expiryLength])
        guard ConstantTime.areEqual(Array(bytes[Self.expiryLength...]), code(purpose, browser, expiry)) else {
            throw .formTokenInvalid
        }
        guard now < UnixTime(seconds: expiry.reduce(0) { $0 << 8 | Int64($1) }) else {
            throw BrowserError(.browserFormTokenExpired, "a form was open for too long")
        }
    }

    /// Every part has its length before it, so that no two different inputs are the same message.
    private func code(_ purpose: String, _ browser: [UInt8], _ expiry: [UInt8]) -> [UInt8] {
        let parts = [Array(purpose.utf8), browser, expiry]
        return HMACSHA256.authenticate(
            parts.flatMap { Self.bytes(of: UnixTime(seconds: Int64($0.count))) + $0 }, key: key)
    }

    private static func bytes(of time: UnixTime) -> [UInt8] {
        stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: time.seconds >> Int64($0)) }
    }
}

extension BrowserError {
    fileprivate static let formTokenInvalid = BrowserError(
        .browserFormTokenInvalid, "a form has no token of this browser")
}
