internal import MartletCore

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
