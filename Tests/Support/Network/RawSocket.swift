import Foundation
internal import Glibc
import Synchronization

/// A connected stream socket that blocks, with a deadline on every wait; closed with its owner at the latest.
package final class RawSocket: Sendable {
    private let descriptor: Int32
    private let closed = Mutex(false)

    init(descriptor: Int32) { self.descriptor = descriptor }

    deinit { close() }

    /// Connects.
    /// - Parameter receiveBuffer: the size of the kernel's buffer; a small one makes a slow reader felt immediately.
    package convenience init(connectingTo endpoint: Endpoint, receiveBuffer: Int32? = nil) throws {
        self.init(descriptor: try openSocket(for: endpoint))
        if var size = receiveBuffer {
            unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        }
        let result = try unsafe withSocketAddress(endpoint) { unsafe Glibc.connect(descriptor, $0, $1) }
        guard result == 0 else { throw TestFailure("connect to \(endpoint): \(errorText())") }
        noDelay()
    }

    /// Whether a connection comes about in time; it is kept in `holding` while that lives.
    package static func connects(
        to endpoint: Endpoint, within limit: Duration, holding: inout [RawSocket]
    ) throws -> Bool {
        let socket = RawSocket(descriptor: try openSocket(for: endpoint))
        _ = fcntl(socket.descriptor, F_SETFL, O_NONBLOCK)
        let result = try unsafe withSocketAddress(endpoint) { unsafe Glibc.connect(socket.descriptor, $0, $1) }
        holding.append(socket)
        return result == 0 || pollOnce(socket.descriptor, POLLOUT, until: Deadline(in: limit))
    }

    func noDelay() {
        var on: Int32 = 1
        unsafe setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    }

    /// The port at this end.
    package var localPort: UInt16 { boundPort(of: descriptor) }

    /// Sends every byte or throws.
    package func send(_ bytes: [UInt8], within limit: Duration = .seconds(20)) throws {
        let deadline = Deadline(in: limit)
        var sent = 0
        while sent < bytes.count {
            try wait(for: POLLOUT, until: deadline, "send")
            let count = unsafe bytes.withUnsafeBytes { raw -> Int in
                guard let base = raw.baseAddress else { return 0 }
                let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
                return unsafe Glibc.send(descriptor, base + sent, raw.count - sent, flags)
            }
            if count < 0, errno == EAGAIN || errno == EINTR { continue }
            guard count >= 0 else { throw TestFailure("send: \(errorText())") }
            sent += count
        }
    }

    /// Sends a text.
    package func send(_ text: String, within limit: Duration = .seconds(20)) throws {
        try send(Array(text.utf8), within: limit)
    }

    /// What came, at least one byte; empty at the end of the stream.
    package func receive(atMost size: Int = 65_536, within limit: Duration = .seconds(20)) throws -> [UInt8] {
        try wait(for: POLLIN, until: Deadline(in: limit), "receive")
        var failure: String?
        let bytes = unsafe [UInt8](unsafeUninitializedCapacity: size) { buffer, filled in
            let count = unsafe recv(descriptor, buffer.baseAddress, size, 0)
            if count < 0 { failure = errorText() }
            filled = max(count, 0)
        }
        if let failure { throw TestFailure("receive: \(failure)") }
        return bytes
    }

    /// Everything up to the end of the stream; a reset counts as the end.
    package func receiveToEnd(within limit: Duration = .seconds(20)) throws -> [UInt8] {
        let deadline = Deadline(in: limit)
        var all: [UInt8] = []
        while true {
            let left = Duration.milliseconds(deadline.milliseconds)
            guard !deadline.hasPassed else { throw TestFailure("no end of stream after \(limit)") }
            let bytes: [UInt8]
            do { bytes = try receive(within: left) } catch let failure as TestFailure {
                if failure.description.hasPrefix("receive: Connection reset") { return all }
                throw failure
            }
            if bytes.isEmpty { return all }
            all += bytes
        }
    }

    /// Whether the other side ends the connection in time; bytes before the end are dropped.
    package func isEnded(within limit: Duration = .seconds(5)) -> Bool {
        let stopwatch = Stopwatch()
        while stopwatch.undisturbed < limit {
            guard ready(POLLIN, until: Deadline(in: .milliseconds(100))) else { continue }
            do {
                if try receive().isEmpty { return true }
            } catch {
                return "\(error)".hasPrefix("receive: Connection reset")
            }
        }
        return false
    }

    /// Whether nothing arrives, not even the end, for so long.
    package func isSilent(for span: Duration) -> Bool { !ready(POLLIN, until: Deadline(in: span)) }

    /// Says that no more bytes come from here, and goes on reading.
    package func finishSending() { end(Int32(SHUT_WR)) }

    /// Ends the connection with a reset instead of an orderly end.
    package func reset() {
        var option = linger(l_onoff: 1, l_linger: 0)
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
        close()
    }

    /// Ends the connection.
    package func close() {
        closed.withLock { isClosed in
            guard !isClosed else { return }
            isClosed = true
            _ = Glibc.close(descriptor)
        }
    }

    /// Ends the connection both ways but keeps the descriptor, so that a thread blocked on it returns.
    package func abort() { end(Int32(SHUT_RDWR)) }

    private func end(_ ways: Int32) {
        closed.withLock { if !$0 { _ = shutdown(descriptor, ways) } }
    }

    private func wait(for event: Int32, until deadline: Deadline, _ what: String) throws {
        guard !closed.withLock({ $0 }) else { throw TestFailure("\(what): closed here") }
        guard ready(event, until: deadline) else { throw TestFailure("\(what): timed out") }
    }

    private func ready(_ event: Int32, until deadline: Deadline) -> Bool {
        pollOnce(descriptor, event, until: deadline)
    }
}

func pollOnce(_ descriptor: Int32, _ event: Int32, until deadline: Deadline) -> Bool {
    while true {
        var item = pollfd(fd: descriptor, events: Int16(event), revents: 0)
        let count = unsafe poll(&item, 1, deadline.milliseconds)
        if count > 0 { return true }
        if count == 0 || errno != EINTR { return false }
    }
}

func errorText() -> String { unsafe String(cString: strerror(errno)) }
