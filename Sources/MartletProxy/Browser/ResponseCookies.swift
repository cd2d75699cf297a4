internal import MartletAuthenticator
internal import MartletBrowser
internal import MartletCore
internal import MartletDecisions
internal import MartletProvider

/// The `Set-Cookie` values that responses will have; few exchanges have one.
///
/// Each is removed when the response is written, or when its exchange ends without one.
struct ResponseCookies {
    private var values: [Handle<Exchange>: [String]] = [:]

    /// The number of exchanges with one.
    var count: Int { values.count }

    /// Adds a value for an exchange: of several for one cookie the last counts.
    ///
    /// One that is there already is not added again: a request that waited for something is authorized twice.
    mutating func add(_ value: String, for exchange: Handle<Exchange>) {
        guard values[exchange]?.contains(where: { $0.hasSameBytes(as: value) }) != true else { return }
        values[exchange, default: []].append(value)
    }

    /// Removes and returns the values for an exchange.
    mutating func take(_ exchange: Handle<Exchange>) -> [String]? { values.removeValue(forKey: exchange) }

    mutating func remove(_ exchange: Handle<Exchange>) { values.removeValue(forKey: exchange) }
}

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
