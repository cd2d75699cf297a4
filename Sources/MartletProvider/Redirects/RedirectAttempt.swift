public import MartletCore
package import MartletCrypto

/// One attempt to sign in by redirect: what binds the response to the browser that began it.
///
/// The core makes it, stores it in a cookie of the browser, and accepts one response to it.
public struct RedirectAttempt: Sendable {
    /// How many letters and digits a ``state`` has: WeChat does not accept more than 128 bytes, and no other character.
    public static let stateLengths = 32...128
    /// How many bytes a ``nonce`` has.
    public static let nonceLengths = 22...128
    /// How many bytes a ``codeVerifier`` has (RFC 7636 §4.1).
    public static let codeVerifierLengths = 43...128

    /// Returned by the other site unchanged, and used once: letters and digits.
    public let state: String
    /// Part of what the issuer signs, where it signs something: letters, digits, `_` and `-`.
    public let nonce: String
    /// The secret of which the other site gets a digest first (RFC 7636), where it accepts one.
    public let codeVerifier: Secret
    /// The URL of the callback, exactly as it is registered at the other site.
    public let redirectURI: String
    public let browser: BrowserKind
    /// What the sign-in is begun for; empty when the browser comes back.
    public var request = RedirectRequest()

    /// `nil` for values of another form.
    public init?(state: String, nonce: String, codeVerifier: Secret, redirectURI: String, browser: BrowserKind) {
        let verifierIsValid = codeVerifier.withBytes {
            Self.codeVerifierLengths.contains($0.count) && $0.allSatisfy { isUnreserved($0) }
        }
        guard Self.stateLengths.contains(state.utf8.count), state.utf8.allSatisfy(isLetterOrDigit),
            Self.nonceLengths.contains(nonce.utf8.count),
            nonce.utf8.allSatisfy({ isLetterOrDigit($0) || "-_".utf8.contains($0) }), verifierIsValid,
            !redirectURI.isEmpty
        else { return nil }
        self.init(
            checked: state, nonce: nonce, codeVerifier: codeVerifier, redirectURI: redirectURI, browser: browser)
    }

    private init(
        checked state: String, nonce: String, codeVerifier: Secret, redirectURI: String, browser: BrowserKind
    ) {
        self.state = state
        self.nonce = nonce
        self.codeVerifier = codeVerifier
        self.redirectURI = redirectURI
        self.browser = browser
    }

    /// A new attempt, with 256 random bits in each of its values.
    /// - Throws: when the system has no random bytes.
    package static func make(redirectURI: String, browser: BrowserKind) throws(CryptoError) -> RedirectAttempt {
        RedirectAttempt(
            checked: Hexadecimal.text(try RandomBytes.make(32)), nonce: Base64URL.encode(try RandomBytes.make(32)),
            codeVerifier: Secret(Base64URL.encode(try RandomBytes.make(32))), redirectURI: redirectURI,
            browser: browser)
    }

    /// The `code_challenge` with the method S256 (RFC 7636 §4.2).
    public var codeChallenge: String { Base64URL.encode(codeVerifier.withBytes { SHA256.digest($0) }) }
}

/// Builds the URLs that browsers are sent to.
public enum AuthorizationURL {
    /// Appends parameters to the query of a URL.
    ///
    /// Everything but unreserved characters (RFC 3986 §2.3) is percent-encoded: a space is `%20`, because some sites
    /// take `+` literally.
    /// - Parameters:
    ///   - endpoint: the URL, without a fragment.
    ///   - parameters: not yet encoded, in the order in which the site expects them.
    public static func make(_ endpoint: String, _ parameters: [(name: String, value: String)]) -> String {
        var text = Array(endpoint.utf8)
        var separator = UInt8(ascii: endpoint.utf8.contains(UInt8(ascii: "?")) ? "&" : "?")
        for (name, value) in parameters {
            text.append(separator)
            append(name, to: &text)
            text.append(UInt8(ascii: "="))
            append(value, to: &text)
            separator = UInt8(ascii: "&")
        }
        return String(decoding: text, as: UTF8.self)
    }

    private static func append(_ part: String, to text: inout [UInt8]) {
        let digits = Array("0123456789ABCDEF".utf8)
        for byte in part.utf8 {
            if isUnreserved(byte) {
                text.append(byte)
            } else {
                text += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
    }
}

private func isLetterOrDigit(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"),
        UInt8(ascii: "A")...UInt8(ascii: "Z"):
        true
    default: false
    }
}

/// The unreserved characters of RFC 3986 §2.3, which are also those of a code verifier.
private func isUnreserved(_ byte: UInt8) -> Bool { isLetterOrDigit(byte) || "-._~".utf8.contains(byte) }

/// What a sign-in by redirect is begun for: a provider asks its site for it, as far as the site understands it.
///
/// What the site then says about the user is checked by the conditions of routes, not here.
public struct RedirectRequest: Sendable {
    /// How long ago the user may have authenticated at the site; `nil` for any time.
    public var maximumAge: Duration?
    /// The level of the authentication, as the claim `acr` names it; `nil` for any.
    public var level: String?
    /// Whether the user has to authenticate at the site, although it may have a session.
    public var confirms = false
    /// The arguments of the link that began it, such as `login_hint`: anyone can have made them.
    public var arguments: [String: String] = [:]

    public init() {}
}
