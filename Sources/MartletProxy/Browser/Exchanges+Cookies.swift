internal import MartletAuthenticator
internal import MartletBrowser
internal import MartletCore
internal import MartletDecisions
internal import MartletProvider

/// The cookies that responses set.
extension Exchanges {
    /// Sets a cookie with the response of an exchange, after those that it sets already.
    mutating func setCookie(_ value: String, of exchange: Handle<Exchange>) {
        cookies.add(value, for: exchange)
        self[exchange].credential.setsCookie = true
    }

    /// Sets the session cookie that replaces the presented one.
    mutating func replaceCookie(
        of exchange: Handle<Exchange>, by replacement: ReplacementCookie, _ context: inout LoopContext
    ) {
        guard let browser = context.snapshot.browser else { return }
        let value = replacement.token.withBytes { String(decoding: $0, as: UTF8.self) }
        // A token has no other bytes than those of a cookie's value.
        guard let text = try? browser.cookies.session.text(value) else { return }
        setCookie(text, of: exchange)
    }
}
