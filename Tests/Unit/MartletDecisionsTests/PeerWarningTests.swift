import MartletCore
import MartletTesting
import Testing

@testable import MartletDecisions

/// Warnings about what peers send.
@Suite struct PeerWarningTests {
    private static let hour: Int64 = 3_600_000_000_000

    private let log = LogRecorder()

    private var warnings: PeerWarnings { PeerWarnings(Logger(log, minimum: .info)) }

    @Test func `a peer is named once an hour for each cause`() {
        let warnings = warnings
        for now in [0, 1, Self.hour - 1] as [Int64] { warnings.ignoredField("forwarded", of: "192.0.2.1", at: now) }
        #expect(log.lines.count == 1 && log.texts[0].contains("peer=192.0.2.1 field=forwarded"))
        warnings.ignoredField("x-forwarded-for", of: "192.0.2.2", at: 5)
        warnings.rejectedProxyHeader("proxy_protocol.bad_length", of: "192.0.2.1", at: 5)
        warnings.rejectedProxyHeader("proxy_protocol.bad_length", of: "192.0.2.1", at: 6)
        warnings.noLocalPort(to: "192.0.2.1:80", at: 7)
        #expect(log.lines.count == 4 && log.texts[3].contains("ip_local_port_range"))
        warnings.ignoredField("forwarded", of: "192.0.2.1", at: Self.hour)
        #expect(log.lines.count == 5)
    }

    @Test func `many peers leave the log readable, and other causes their lines`() {
        let warnings = warnings
        for peer in 0..<1000 { warnings.ignoredField("forwarded", of: "192.0.2.\(peer)", at: 0) }
        #expect(log.lines.count == 64)
        warnings.rejectedProxyHeader("proxy_protocol.bad_line", of: "192.0.2.1", at: 0)
        #expect(log.lines.count == 65)
        warnings.ignoredField("forwarded", of: "198.51.100.1", at: Self.hour)
        #expect(log.lines.count == 66)
    }
}
