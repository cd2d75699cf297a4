internal import MartletCore

/// What an app wants from a sign-in in a browser (RFC 8252): where it ends, and how the app proves that it started it.
package struct AppRequest: Sendable, Equatable {
    /// The longest `state` of an app.
    package static let maximumStateBytes = 512

    /// One of `browser.native_redirects`.
    package let redirect: String
    package let challenge: CodeChallenge
    /// The app's own value, which it gets back.
    package let state: String?

    init(redirect: String, challenge: CodeChallenge, state: String?) {
        self.redirect = redirect
        self.challenge = challenge
        self.state = state
    }

    /// Checks the arguments of an app.
    /// - Parameter redirects: `browser.native_redirects`, compared byte by byte; one of a loopback address without a port
    ///   is that of every port, which an app cannot choose (RFC 8252 §7.3).
    /// - Throws: `browser.redirect_unknown`, after which nothing may be sent to the redirect;
    ///   `browser.code_challenge_invalid`, `browser.state_too_long`.
    package init(
        redirect: String?, challenge: String?, method: String?, state: String?, redirects: [String]
    ) throws(BrowserError) {
        guard let redirect, redirects.contains(where: { Self.matches(redirect, $0) }) else {
            throw BrowserError(.browserRedirectUnknown, "the redirect is not in browser.native_redirects")
        }
        self.redirect = redirect
        self.challenge = try CodeChallenge(challenge, method: method)
        guard state?.utf8.count ?? 0 <= Self.maximumStateBytes else {
            throw BrowserError(.browserStateTooLong, "the state of an app is too long")
        }
        self.state = state
    }

    private static func matches(_ redirect: String, _ listed: String) -> Bool {
        if redirect.hasSameBytes(as: listed) { return true }
        let host = ["http://127.0.0.1", "http://[::1]", "http://localhost"].first {
            listed.hasPrefix("\($0)/") && redirect.hasPrefix("\($0):")
        }
        guard let host else { return false }
        let rest = redirect.dropFirst(host.count + 1)
        let port = rest.prefix { $0 != "/" }
        guard (1...5).contains(port.utf8.count), port.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let number = UInt16(port), number > 0
        else { return false }
        return String(rest.dropFirst(port.count)).hasSameBytes(as: String(listed.dropFirst(host.count)))
    }

    /// Where the browser is sent with a one-time code.
    package func location(code: OneTimeCode) -> String { location("code", code.text) }

    /// Where the browser is sent without one.
    /// - Parameter error: a code of RFC 6749 §4.1.2.1, such as `access_denied`.
    package func location(error: String) -> String { location("error", error) }

    private func location(_ name: String, _ value: String) -> String {
        let separator = redirect.utf8.contains(UInt8(ascii: "?")) ? "&" : "?"
        let echoed = state.map { "&state=\(URLEscaping.argument($0))" } ?? ""
        return "\(redirect)\(separator)\(name)=\(URLEscaping.argument(value))\(echoed)"
    }
}
