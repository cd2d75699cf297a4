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
        let date = CalendarDate(daysSince1970: days)
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
}
