import CLinux
import Glibc
import MartletCore
import MartletHTTP
import MartletIO
import MartletResponder
import MartletRouter
import MartletTraffic
import Synchronization

@testable import MartletDecisions
@testable import MartletProxy

/// What a test compares after a step.
extension LoopBench {
    func isAlive(_ downstream: Handle<DownstreamConnection>) -> Bool { run { $0.downstreams.all.contains(downstream) } }
    func isAlive(_ upstream: Handle<UpstreamConnection>) -> Bool { run { $0.upstreams.all.contains(upstream) } }
    func isAlive(_ exchange: Handle<Exchange>) -> Bool { run { $0.exchanges.all.contains(exchange) } }

    func phase(_ downstream: Handle<DownstreamConnection>) -> DownstreamPhase {
        run { $0.downstreams[downstream].phase }
    }

    func phase(_ upstream: Handle<UpstreamConnection>) -> UpstreamPhase {
        run { $0.upstreams[upstream].phase }
    }

    /// Bytes for a client that the kernel has not accepted.
    func unsent(_ downstream: Handle<DownstreamConnection>) -> Int {
        run { $0.downstreams[downstream].transport.output.count }
    }

    /// Clear text for an endpoint that was not sent.
    func output(_ upstream: Handle<UpstreamConnection>) -> String {
        String(decoding: run { $0.upstreams[upstream].output.array }, as: UTF8.self)
    }

    /// The bytes of a response that are sent next.
    func pending(_ exchange: Handle<Exchange>) -> String {
        String(decoding: run { $0.context.scratch.pending[exchange].array }, as: UTF8.self)
    }

    /// The idle connections of an endpoint, the one used last at the end.
    func idle(_ endpoint: Int = 0) -> [Handle<UpstreamConnection>] {
        run { $0.upstreams.directory.endpoints[endpoint].idle }
    }

    /// Requests in progress at an endpoint.
    func active(_ endpoint: Int = 0) -> Int { run { $0.upstreams.directory.endpoints[endpoint].active } }

    /// Failures of an endpoint in a row.
    func failures(_ endpoint: Int = 0) -> Int { run { $0.upstreams.directory.endpoints[endpoint].ejection.failures } }

    /// Removes and returns the connections to resume, as words such as `downstream 0`.
    func ready() -> [String] {
        let tokens = run { loop in
            let tokens = loop.context.schedule.ready.tokens()
            for token in tokens {
                if token.kind == .downstream, loop.downstreams.all.contains(token.downstream) {
                    loop.downstreams[token.downstream].isReady = false
                } else if token.kind == .upstream, loop.upstreams.all.contains(token.upstream) {
                    loop.upstreams[token.upstream].isReady = false
                }
            }
            return tokens
        }
        return tokens.map { LoopBench.text($0) }
    }

    /// The connections that may have frames to write.
    func dirty() -> [String] { run { $0.context.schedule.dirty.tokens() }.map { LoopBench.text($0) } }

    /// Advances the timer wheel to a moment, in milliseconds since the start; returns the entries that are due then.
    func fire(at milliseconds: Int64) -> [String] {
        let moment = LoopBench.start + milliseconds * 1_000_000
        return run { loop in
            guard loop.context.schedule.advance(to: moment) else { return [] }
            let tokens = loop.context.schedule.due.map { LoopBench.text(EventToken(raw: $0.token)) }
            loop.context.schedule.clearDue()
            return tokens
        }
    }

    private static func text(_ token: EventToken) -> String {
        switch token.kind {
        case .downstream: "downstream \(token.downstream.index)"
        case .upstream: "upstream \(token.upstream.index)"
        case .listener: "listener \(token.listener)"
        case .mailbox: "mailbox"
        case .delayProbe: "delay probe"
        case nil: "unknown"
        }
    }

    /// The counters.
    func counted() -> LoopReport { run { $0.context.counters.report() } }

    /// The counted requests as `route status count`.
    func requests() -> [String] { counted().requests.map { "\($0.route) \($0.status) \($0.count)" } }

    /// The access records since the last call, in the form
    /// `192.0.2.1 GET a/x 404 router.no_route route=- upstream= in=0 out=5 us=0`.
    func log() -> [String] {
        run { $0.context.logs.access.flush(now: 0, isIdle: true) }
        return access.take().split(separator: "\n").map { LoopBench.summary($0) }
    }

    private static func summary(_ line: Substring) -> String {
        var values: [String: String] = [:]
        for member in line.dropFirst().dropLast().split(separator: ",") {
            let plain = member.filter { $0 != "\"" }
            let parts = plain.split(separator: ":", maxSplits: 1)
            values[String(parts[0])] = parts.count > 1 ? String(parts[1]) : ""
        }
        func value(_ name: String) -> String { values[name] ?? "?" }
        let request = "\(value("client")) \(value("method")) \(value("host"))\(value("path"))"
        let outcome = "\(value("status")) \(value("reason")) route=\(value("route")) upstream=\(value("upstream"))"
        return "\(request) \(outcome) in=\(value("bytes_in")) out=\(value("bytes_out")) us=\(value("duration_us"))"
    }
}

extension Snapshot {
    /// The names of all routes, mounts included.
    var routeNames: [String] { routes.routes.map(\.name) }
}

/// Addresses of a bench as 16 bytes.
enum BenchAddress {
    /// 192.0.2.1, of every client.
    static let client: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 192, 0, 2, 1]
    /// 198.51.100.7.
    static let other: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 198, 51, 100, 7]
}

/// The other end of a connection: what a client or an endpoint sees.
final class BenchEnd {
    /// The direction to this end.
    enum State: Equatable {
        case open
        /// There are unread bytes.
        case hasBytes
        case closed
        /// It was closed while the loop had unread bytes.
        case reset
    }

    let fd: Int32

    init(_ fd: Int32) { self.fd = fd }

    deinit { Glibc.close(fd) }

    /// Two connected non-blocking sockets: a descriptor for the loop, which can send little before it has to wait, and
    /// the other end.
    static func pair() -> (near: Int32, far: BenchEnd) {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let made = unsafe socketpair(AF_UNIX, type, 0, &ends)
        precondition(made == 0, "no sockets")
        var size: Int32 = 32 * 1024
        _ = unsafe setsockopt(ends[0], SOL_SOCKET, SO_SNDBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        return (ends[0], BenchEnd(ends[1]))
    }

    /// Everything that was sent to this end so far.
    func bytes() -> [UInt8] {
        var all: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = unsafe recv(fd, &part, part.count, 0)
            guard count > 0 else { return all }
            all += part[..<count]
        }
    }

    func text() -> String { String(decoding: bytes(), as: UTF8.self) }

    func send(_ bytes: [UInt8]) {
        let sent = unsafe Glibc.send(fd, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        precondition(sent == bytes.count, "the kernel did not accept everything")
    }

    func send(_ text: String) { send(Array(text.utf8)) }

    /// Closes the sending side of this end.
    func finish() { _ = shutdown(fd, Int32(SHUT_WR)) }

    /// Closes both directions: whatever the loop sends fails.
    func leave() { _ = shutdown(fd, Int32(SHUT_RDWR)) }

    /// The state; a reset is reported once.
    var state: State {
        var byte: UInt8 = 0
        let count = unsafe recv(fd, &byte, 1, Int32(MSG_PEEK))
        if count > 0 { return .hasBytes }
        if count == 0 { return .closed }
        return martlet_errno() == ECONNRESET ? .reset : .open
    }

    /// Whether closing a socket will reset its connection.
    static func isResetOnClose(_ fd: Int32) -> Bool {
        var option = linger(l_onoff: 0, l_linger: 1)
        var length = socklen_t(MemoryLayout<linger>.size)
        let read = unsafe getsockopt(fd, SOL_SOCKET, SO_LINGER, &option, &length)
        return read == 0 && option.l_onoff != 0 && option.l_linger == 0
    }
}

/// Collects access records.
final class RecordedAccess: AccessLogging {
    let format = AccessFormat.json
    private let written = Mutex("")

    /// Removes and returns what was written.
    func take() -> String {
        written.withLock { text in
            defer { text = "" }
            return text
        }
    }

    func take(_ lines: inout ByteBuffer) {
        let text = String(decoding: lines.array, as: UTF8.self)
        lines.removeAll()
        written.withLock { $0 += text }
    }
}
