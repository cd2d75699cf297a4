private import CLinux
internal import MartletCore

/// Where syslog listens.
package enum SyslogTarget: Sendable, Hashable {
    /// A datagram socket, such as `/dev/log`.
    case unix(path: String)
    case udp(host: String, port: UInt16)
}

/// A syslog server: one datagram of RFC 5424 for each line.
final class SyslogSink: AuditSink {
    /// Facility 10 (authpriv), severity 5 (notice).
    private static let priority = 85
    private static let pollMilliseconds: Int32 = 100

    private let target: SyslogTarget
    private let clock: Clock
    /// Everything between the time and the line.
    private let header: String
    private let socket = Lock<Int32>(-1)

    init(_ target: SyslogTarget, host: String, process: Int32, clock: Clock) {
        self.target = target
        self.clock = clock
        let name = host.utf8.allSatisfy { (0x21...0x7E).contains($0) } && (1...255).contains(host.utf8.count)
        header = " \(name ? host : "-") martlet \(process) audit - "
    }

    deinit { close() }

    let name = "syslog"
    let retryLimit = Duration.seconds(2)
    let isCertain = false

    /// An unavailable server is no reason not to begin.
    func open() throws(AuditError) -> AuditStart { .new(torn: nil) }

    /// The datagram of a line.
    static func datagram(_ line: [UInt8], at milliseconds: Int64, header: String) -> [UInt8] {
        Array("<\(priority)>1 \(InternetTime.text(milliseconds: milliseconds))\(header)".utf8) + line
    }

    func write(_ lines: ArraySlice<OutputLine>, until isOver: @Sendable () -> Bool) -> WriteOutcome {
        var written = 0
        for line in lines {
            let datagram = Self.datagram(line.bytes, at: clock.unixMilliseconds, header: header)
            if let error = send(datagram, until: isOver) { return .failed(written: written, error) }
            written += 1
        }
        return .written
    }

    private func send(_ datagram: [UInt8], until isOver: @Sendable () -> Bool) -> AuditError? {
        socket.withLock { socket in
            if socket < 0 { socket = connected() }
            while socket >= 0 {
                let count = unsafe datagram.withUnsafeBytes { bytes in
                    unsafe CLinux.send(socket, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
                }
                if count >= 0 { return nil }
                let number = martlet_errno()
                if number == EINTR { continue }
                guard number == EAGAIN || number == ENOBUFS, !isOver() else {
                    // A server that was started again has another socket.
                    if number != EMSGSIZE {
                        CLinux.close(socket)
                        socket = -1
                    }
                    return AuditError(.auditNotWritten, "syslog: \(systemReason(number))")
                }
                var polled = pollfd(fd: socket, events: Int16(POLLOUT), revents: 0)
                _ = unsafe martlet_poll(&polled, 1, Self.pollMilliseconds)
            }
            return AuditError(.auditNotWritten, "syslog: \(systemReason(martlet_errno()))")
        }
    }

    private func connected() -> Int32 {
        switch target {
        case .unix(let path): unsafe martlet_datagram_unix(path)
        case .udp(let host, let port): unsafe martlet_datagram_udp(host, String(port))
        }
    }

    func close() {
        socket.withLock { socket in
            if socket >= 0 { CLinux.close(socket) }
            socket = -1
        }
    }
}
