package import MartletCore

/// An HTTP date, `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110 §5.6.7); 29 bytes, formatted once a second.
package struct HTTPDate: Sendable {
    private var bytes: InlineArray<29, UInt8> = .init(repeating: 0x20)
    /// The instant.
    package let time: UnixTime

    /// Instants outside the years 1970 to 9999 are clamped.
    package init(_ time: UnixTime) {
        self.time = time
        let seconds = min(max(time.seconds, 0), 253_402_300_799)
        let days = seconds / 86_400
        let clock = seconds % 86_400
        let date = HTTPDate.civil(days)
        put(three: "SunMonTueWedThuFriSat", Int((days + 4) % 7), at: 0)
        bytes[3] = UInt8(ascii: ",")
        put(date.day, at: 5)
        put(three: "JanFebMarAprMayJunJulAugSepOctNovDec", Int(date.month - 1), at: 8)
        put(date.year / 100, at: 12)
        put(date.year % 100, at: 14)
        put(clock / 3600, at: 17)
        bytes[19] = UInt8(ascii: ":")
        put(clock / 60 % 60, at: 20)
        bytes[22] = UInt8(ascii: ":")
        put(clock % 60, at: 23)
        put(three: "GMT", 0, at: 26)
    }

    /// Appends the 29 bytes.
    package func append(to out: inout ByteBuffer) {
        for index in 0..<29 { out.append(bytes[index]) }
    }

    private mutating func put(_ number: Int64, at index: Int) {
        bytes[index] = UInt8(truncatingIfNeeded: number / 10 % 10) &+ 0x30
        bytes[index + 1] = UInt8(truncatingIfNeeded: number % 10) &+ 0x30
    }

    private mutating func put(three names: StaticString, _ number: Int, at index: Int) {
        for offset in 0..<3 { bytes[index + offset] = names.byte(at: number * 3 + offset) }
    }

    /// The Gregorian date of a day since 1970, counted in years that begin in March so that the leap day comes last.
    private static func civil(_ days: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = days + 719_468
        let era = shifted / 146_097
        let dayOfEra = shifted % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        let day = dayOfYear - (153 * marchMonth + 2) / 5 + 1
        let month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day)
    }
}
