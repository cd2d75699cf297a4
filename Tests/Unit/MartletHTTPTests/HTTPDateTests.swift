import Foundation
import MartletCore
import MartletHTTP
import Testing

@Suite struct HTTPDateTests {
    private func text(_ seconds: Int64) -> String {
        var out = ByteBuffer()
        HTTPDate(UnixTime(seconds: seconds)).append(to: &out)
        return String(decoding: out.array, as: UTF8.self)
    }

    @Test(arguments: [
        (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"), (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
        (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
        (4_107_542_399, "Sun, 28 Feb 2100 23:59:59 GMT"), (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        (253_402_300_799, "Fri, 31 Dec 9999 23:59:59 GMT"), (Int64.max, "Fri, 31 Dec 9999 23:59:59 GMT"),
        (-1, "Thu, 01 Jan 1970 00:00:00 GMT"),
    ])
    func `writes the date of RFC 9110`(_ seconds: Int64, _ expected: String) {
        #expect(text(seconds) == expected)
    }

    @Test func `agrees with Foundation on every kind of day`() {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        for seconds in stride(from: Int64(0), through: 8_000_000_000, by: 7_654_321) {
            #expect(text(seconds) == formatter.string(from: Date(timeIntervalSince1970: Double(seconds))))
        }
    }

    @Test func `names the statuses`() {
        #expect(HTTPStatus.reason(200).description == "OK")
        #expect(HTTPStatus.reason(302).description == "Found")
        #expect(HTTPStatus.reason(431).description == "Request Header Fields Too Large")
        #expect(HTTPStatus.reason(503).description == "Service Unavailable")
        #expect(HTTPStatus.reason(299).description == "Unknown")
        #expect(HTTPStatus.reason(-1).description == "Unknown")
    }
}
