/// A Gregorian date.
@frozen package struct CalendarDate: Sendable, Equatable {
    package let year: Int64
    /// 1 to 12.
    package let month: Int64
    /// 1 to 31.
    package let day: Int64

    /// The date of a day since 1970-01-01, which is day 0; counted in years that begin in March, so that the leap day
    /// comes last. Days before 1970 count as day 0, and days after the year 9999 as its last.
    package init(daysSince1970 days: Int64) {
        let shifted = min(max(days, 0), 2_932_896) + 719_468
        let era = shifted / 146_097
        let dayOfEra = shifted % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let marchMonth = (5 * dayOfYear + 2) / 153
        day = dayOfYear - (153 * marchMonth + 2) / 5 + 1
        month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9
        year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    }

    /// The day since 1970-01-01 of a date that exists, between the years 1970 and 9999.
    static func daysSince1970(_ year: Int64, _ month: Int64, _ day: Int64) -> Int64? {
        guard (1970...9999).contains(year), (1...12).contains(month), (1...31).contains(day) else { return nil }
        let shifted = year - (month <= 2 ? 1 : 0)
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        let yearOfEra = shifted % 400
        let days =
            shifted / 400 * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
        // Another date: the day is not one of that month.
        let date = CalendarDate(daysSince1970: days)
        return date.year == year && date.month == month && date.day == day ? days : nil
    }
}

/// An instant as RFC 3339 writes it, in UTC with milliseconds: `2026-11-23T09:30:00.250Z`.
@frozen package enum InternetTime {
    /// The text of an instant in milliseconds since 1970; instants outside the years 1970 to 9999 are clamped.
    package static func text(milliseconds: Int64) -> String {
        let instant = min(max(milliseconds, 0), 253_402_300_799_999)
        let seconds = instant / 1000
        let date = CalendarDate(daysSince1970: seconds / 86_400)
        let time = seconds % 86_400
        let day = "\(digits(date.year, 4))-\(digits(date.month, 2))-\(digits(date.day, 2))"
        let clock = "\(digits(time / 3600, 2)):\(digits(time / 60 % 60, 2)):\(digits(time % 60, 2))"
        return "\(day)T\(clock).\(digits(instant % 1000, 3))Z"
    }

    /// The seconds since 1970 of an instant between the years 1970 and 9999, with any offset; a fraction is dropped.
    /// - Returns: `nil` for any other text.
    package static func seconds(of text: String) -> Int64? {
        let bytes = Array(text.utf8)
        guard bytes.count >= 20, bytes.count <= 40, bytes[10] == UInt8(ascii: "T") || bytes[10] == UInt8(ascii: "t"),
            let year = number(bytes[..<4]), bytes[4] == UInt8(ascii: "-"), let month = number(bytes[5..<7]),
            bytes[7] == UInt8(ascii: "-"), let day = number(bytes[8..<10]),
            let days = CalendarDate.daysSince1970(year, month, day),
            let time = secondsOfDay(bytes[11..<19])
        else { return nil }
        var rest = bytes[19...]
        if rest.first == UInt8(ascii: ".") {
            let fraction = rest.dropFirst().prefix { (0x30...0x39).contains($0) }
            guard !fraction.isEmpty else { return nil }
            rest = rest.dropFirst(1 + fraction.count)
        }
        guard let offset = offset(rest) else { return nil }
        let seconds = days * 86_400 + time - offset
        return seconds >= 0 ? seconds : nil
    }

    /// `09:30:00`
    private static func secondsOfDay(_ text: ArraySlice<UInt8>) -> Int64? {
        let parts = text.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        guard parts.count == 3, parts.allSatisfy({ $0.count == 2 }), let hours = number(parts[0]), hours < 24,
            let minutes = number(parts[1]), minutes < 60, let seconds = number(parts[2]), seconds < 60
        else { return nil }
        return hours * 3600 + minutes * 60 + seconds
    }

    /// `Z`, `+08:00`
    private static func offset(_ text: ArraySlice<UInt8>) -> Int64? {
        if text.count == 1 { return text.first == UInt8(ascii: "Z") || text.first == UInt8(ascii: "z") ? 0 : nil }
        guard text.count == 6, let sign = text.first, sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-"),
            let seconds = secondsOfDay(text.dropFirst() + Array(":00".utf8))
        else { return nil }
        return sign == UInt8(ascii: "+") ? seconds : -seconds
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
        guard !digits.isEmpty, digits.count <= 4, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return digits.reduce(0) { $0 * 10 + Int64($1 - 0x30) }
    }

    private static func digits(_ number: Int64, _ width: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(width - text.utf8.count, 0)) + text
    }
}

extension UnixTime {
    /// The instant that a text such as `2026-12-24T18:00:00+08:00` names (RFC 3339); a fraction is dropped.
    ///
    /// `nil` for any other text, and outside the years 1970 to 9999.
    public init?(rfc3339 text: String) {
        guard let seconds = InternetTime.seconds(of: text) else { return nil }
        self.init(seconds: seconds)
    }
}
