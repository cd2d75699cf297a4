import MartletTesting
import Testing

@testable import MartletCore

@Suite struct CalendarDateTests {
    @Test(
        arguments: [
            (0, 1970, 1, 1), (58, 1970, 2, 28), (59, 1970, 3, 1), (11_016, 2000, 2, 29), (11_017, 2000, 3, 1),
            (20_780, 2026, 11, 23), (47_540, 2100, 2, 28), (47_541, 2100, 3, 1), (2_932_896, 9999, 12, 31),
            (-1, 1970, 1, 1), (.max, 9999, 12, 31), (.min, 1970, 1, 1),
        ] as [(Int64, Int64, Int64, Int64)])
    func `is the date of a day`(days: Int64, year: Int64, month: Int64, day: Int64) {
        let date = CalendarDate(daysSince1970: days)
        #expect([date.year, date.month, date.day] == [year, month, day])
    }

    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (1_795_426_200_250, "2026-11-23T09:30:00.250Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"), (-5, "1970-01-01T00:00:00.000Z"),
            (.max, "9999-12-31T23:59:59.999Z"),
        ] as [(Int64, String)])
    func `is written as RFC 3339`(milliseconds: Int64, text: String) {
        #expect(InternetTime.text(milliseconds: milliseconds) == text)
    }

    @Test(
        arguments: [
            ("1970-01-01T00:00:00Z", 0), ("2026-11-23T09:30:00.250Z", 1_795_426_200), ("1970-01-01t00:00:01z", 1),
            ("2000-02-29T23:59:59Z", 951_868_799), ("9999-12-31T23:59:59Z", 253_402_300_799),
            ("2026-11-23T17:30:00+08:00", 1_795_426_200), ("2026-11-23T06:00:00.999999-03:30", 1_795_426_200),
            ("1970-01-01T08:00:00+08:00", 0),
        ] as [(String, Int64)])
    func `is read as RFC 3339`(text: String, seconds: Int64) {
        #expect(InternetTime.seconds(of: text) == seconds)
    }

    @Test(arguments: [
        "", "2026-11-23", "2026-11-23T09:30:00", "2026-11-23 09:30:00Z", "2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z", "2026-01-00T00:00:00Z", "2026-04-31T00:00:00Z", "1969-12-31T23:59:59Z",
        "1970-01-01T00:00:00+00:01", "2026-11-23T24:00:00Z", "2026-11-23T09:60:00Z", "2026-11-23T09:30:60Z",
        "2026-11-23T09:30:00.Z", "2026-11-23T09:30:00+8:00", "2026-11-23T09:30:00+0800", "2026-11-23T09:30:00ZZ",
        "+026-11-23T09:30:00Z", "2026-11-23T09:30:00.0000000000000000000000Z", "20261-1-23T09:30:00Z",
    ])
    func `is nothing else`(text: String) {
        #expect(InternetTime.seconds(of: text) == nil)
    }
}
