public import MartletCore
public import MartletJSON

/// A time in a token (RFC 7519 §2): seconds since 1970, which may have a fraction.
public struct NumericDate: Sendable, Equatable {
    private static let maximumDigits = 12
    private static let end: Int64 = 1_000_000_000_000
    private static let maximumExponent = 999

    /// The whole second before it, or the time itself: for what ends, or grows old, then.
    public let floor: UnixTime
    /// The whole second after it, or the time itself: for what begins then.
    public let ceiling: UnixTime

    /// The same for a whole number of seconds.
    public init(_ time: UnixTime) { self.init(floor: time, ceiling: time) }

    private init(floor: UnixTime, ceiling: UnixTime) {
        self.floor = floor
        self.ceiling = ceiling
    }

    /// Any JSON number that is not negative and has at most 12 digits before the point, so that arithmetic on it cannot
    /// overflow.
    /// - Returns: `nil` for anything else.
    public init?(_ value: JSONValue) {
        guard case .number(let number) = value else { return nil }
        if let seconds = Self.wholeSeconds(number.text) {
            self.init(UnixTime(seconds: seconds))
            return
        }
        guard let (seconds, hasFraction) = Self.seconds(number.text) else { return nil }
        self.init(
            floor: UnixTime(seconds: seconds), ceiling: UnixTime(seconds: hasFraction ? seconds &+ 1 : seconds))
    }

    /// - Returns: `nil` unless it is 1 to 12 digits.
    private static func wholeSeconds(_ text: String) -> Int64? {
        let bytes = text.utf8Span.span
        guard bytes.count <= maximumDigits else { return nil }
        var seconds: Int64 = 0
        for index in bytes.indices {
            let digit = bytes[index] &- 48
            guard digit < 10 else { return nil }
            seconds = seconds &* 10 &+ Int64(digit)
        }
        return seconds
    }

    /// A number with a fraction or an exponent, exactly: as a double, some times would be rounded up.
    private static func seconds(_ text: String) -> (seconds: Int64, hasFraction: Bool)? {
        let parts = text.utf8.split(maxSplits: 1) { $0 | 0x20 == UInt8(ascii: "e") }
        guard let mantissa = parts.first, mantissa.first != UInt8(ascii: "-") else { return nil }
        let exponent = parts.count > 1 ? Int(String(parts[1]) ?? "") : 0
        guard let exponent, abs(exponent) <= maximumExponent else { return nil }
        let point = mantissa.firstIndex(of: UInt8(ascii: ".")) ?? mantissa.endIndex
        let digits = mantissa.filter { $0 != UInt8(ascii: ".") }
        // How many of the digits are before the point.
        let count = max(0, mantissa.distance(from: mantissa.startIndex, to: point) + exponent)
        var seconds: Int64 = 0
        for index in 0..<count {
            seconds = seconds &* 10 &+ Int64(index < digits.count ? digits[index] &- 48 : 0)
            guard seconds < end else { return nil }
        }
        return (seconds, digits.dropFirst(count).contains { $0 != 48 })
    }
}
