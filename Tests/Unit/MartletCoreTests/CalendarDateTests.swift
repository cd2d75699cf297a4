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
}
