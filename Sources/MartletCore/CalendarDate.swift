/// A Gregorian date.
package struct CalendarDate: Sendable, Equatable {
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
}

/// An instant as RFC 3339 writes it, in UTC with milliseconds: `2026-11-23T09:30:00.250Z`.
package enum InternetTime {
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

    private static func digits(_ number: Int64, _ width: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(width - text.utf8.count, 0)) + text
    }
}
