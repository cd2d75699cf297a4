/// The `Set-Cookie` values that responses will have; few exchanges have one.
///
/// Each is removed when the response is written, or when its exchange ends without one.
struct ResponseCookies {
    private var values: [Handle<Exchange>: String] = [:]

    /// The number of exchanges with one.
    var count: Int { values.count }

    /// Sets the value for an exchange, in place of an earlier one.
    mutating func set(_ value: String, for exchange: Handle<Exchange>) { values[exchange] = value }

    /// Removes and returns the value for an exchange.
    mutating func take(_ exchange: Handle<Exchange>) -> String? { values.removeValue(forKey: exchange) }

    mutating func remove(_ exchange: Handle<Exchange>) { values.removeValue(forKey: exchange) }
}
