import MartletCore
import Testing

@testable import MartletAudit

@Suite struct `Destinations of the audit log` {
    @Test func `get one datagram of RFC 5424 for each line`() {
        let datagram = SyslogSink.datagram(
            Array("{}".utf8), at: 1_795_683_000_250, header: " host martlet 7 audit - ")
        #expect(
            String(decoding: datagram, as: UTF8.self)
                == "<85>1 2026-11-26T08:50:00.250Z host martlet 7 audit - {}")
    }

    @Test(arguments: [
        (200, "", true), (204, "", true), (202, "{\"ok\":true}", true), (200, "taken", true),
        (200, "<html>", false), (200, " \n<!DOCTYPE html>", false), (200, "\u{FEFF}<html>", false),
        (302, "", false), (400, "", false), (500, "", false),
    ])
    func `have taken lines only if they say so`(status: Int, body: String, isTaken: Bool) {
        let response = HTTPCallResponse(status: status, body: Array(body.utf8))
        #expect((WebhookSink.rejection(response) == nil) == isTaken)
    }
}
