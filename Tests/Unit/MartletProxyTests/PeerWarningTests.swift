import MartletCore
import Testing

@testable import MartletProxy

/// Warnings about what peers send.
@Suite struct PeerWarningTests {
    private static let hour: Int64 = 3_600_000_000_000

    private let lines = RecordedLines()

    private var warnings: PeerWarnings { PeerWarnings(Logger(lines, minimum: .info)) }

    @Test func `a peer is named once an hour for each cause`() {
        let warnings = warnings
        for now in [0, 1, Self.hour - 1] as [Int64] { warnings.ignoredField("forwarded", of: "192.0.2.1", at: now) }
        #expect(lines.all.count == 1 && lines.all[0].contains("peer=192.0.2.1 field=forwarded"))
        warnings.ignoredField("x-forwarded-for", of: "192.0.2.2", at: 5)
        warnings.rejectedProxyHeader("proxy_protocol.bad_length", of: "192.0.2.1", at: 5)
        warnings.rejectedProxyHeader("proxy_protocol.bad_length", of: "192.0.2.1", at: 6)
        warnings.noLocalPort(to: "192.0.2.1:80", at: 7)
        #expect(lines.all.count == 4 && lines.all[3].contains("ip_local_port_range"))
        warnings.ignoredField("forwarded", of: "192.0.2.1", at: Self.hour)
        #expect(lines.all.count == 5)
    }

    @Test func `many peers leave the log readable, and other causes their lines`() {
        let warnings = warnings
        for peer in 0..<1000 { warnings.ignoredField("forwarded", of: "192.0.2.\(peer)", at: 0) }
        #expect(lines.all.count == 64)
        warnings.rejectedProxyHeader("proxy_protocol.bad_line", of: "192.0.2.1", at: 0)
        #expect(lines.all.count == 65)
        warnings.ignoredField("forwarded", of: "198.51.100.1", at: Self.hour)
        #expect(lines.all.count == 66)
    }
}
