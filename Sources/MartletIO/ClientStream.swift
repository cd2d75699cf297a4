private import CLinux
package import MartletCore
package import MartletTLS

/// Why a stream to a server ended.
package struct StreamError: Error, Sendable, CustomStringConvertible {
    package let code: ErrorCode
    package let message: String

    package init(code: ErrorCode, message: String) {
        self.code = code
        self.message = message
    }

    init(_ error: IOError) { self.init(code: .streamFailed, message: error.description) }
    init(_ error: TLSError) { self.init(code: error.code, message: error.message) }

    package var description: String { "\(message) [\(code)]" }
}

extension ErrorCode {
    /// Nobody listens there, or the network says no.
    package static let streamRefused: ErrorCode = "io.connect_refused"
    /// The peer closed the connection.
    package static let streamClosed: ErrorCode = "io.closed_by_peer"
    /// A system call on the connection failed.
    package static let streamFailed: ErrorCode = "io.stream_failed"
    /// The loop that served the connection has stopped.
    package static let streamLoopStopped: ErrorCode = "io.loop_stopped"
}

/// A byte stream to a server on a service loop: TCP or a Unix socket, in the clear or under TLS.
///
/// Belongs to its loop. The owner bounds it: it takes all of `input` at each `received`, stops sending when
/// `unsentBytes` grows, and sets the deadlines.
package final class ClientStream {
    /// What the owner is told; nothing comes after `closed`, nor after the owner's own `close()`.
    package enum Event {
        /// Connected, and under TLS the peer is who it should be.
        case opened
        /// `input` has grown.
        case received
        case closed(StreamError)
    }

    /// Bytes taken from the kernel at once, and how often in a row before others have their turn.
    private static let readBytes = 16 * 1024
    private static let readsInARow = 4

    /// What has come in and waits for the owner.
    package var input = ByteBuffer()

    private let loop: EventLoop
    private let descriptor: Int32
    private var engine: TLSEngine?
    private var output = ByteBuffer()
    private var registration: LoopRegistration?
    private var handler: ((Event) -> Void)?
    private var isConnected = false
    private var isOpen = false
    private var isClosed = false

    /// Starts to connect; the first event comes later, never from within this call.
    package init(
        to endpoint: SocketEndpoint, on loop: EventLoop, engine: consuming TLSEngine?,
        _ handler: @escaping (Event) -> Void
    ) throws(StreamError) {
        loop.preconditionInLoop()
        self.loop = loop
        self.engine = consume engine
        self.handler = handler
        do {
            descriptor = try Socket.connect(to: endpoint).fd
        } catch {
            throw StreamError(code: .streamRefused, message: error.description)
        }
        do {
            registration = try loop.register(descriptor, [.readable, .writable, .readClosed]) { [weak self] readiness in
                self?.serve(readiness)
            }
        } catch {
            CLinux.close(descriptor)
            isClosed = true
            throw StreamError(error)
        }
    }

    deinit { assert(isClosed, "a stream is closed before it is let go of") }

    /// What was sent and is still here.
    package var unsentBytes: Int { output.count }

    /// Sends bytes, now or as soon as the peer takes them.
    package func send(_ bytes: UnsafeBufferPointer<UInt8>) {
        loop.preconditionInLoop()
        guard !isClosed else { return }
        if engine == nil {
            unsafe output.append(bytes)
        } else {
            do {
                try unsafe engine?.send(bytes)
            } catch {
                return fail(StreamError(error))
            }
            engine?.takeCiphertext(into: &output)
        }
        if isConnected { flush() }
    }

    /// Ends the stream without a further event.
    ///
    /// Twice is once.
    package func close() {
        loop.preconditionInLoop()
        guard !isClosed else { return }
        isClosed = true
        handler = nil
        engine?.close()
        engine?.takeCiphertext(into: &output)
        if isConnected, !output.isEmpty { _ = write() }
        registration?.end()
        registration = nil
        CLinux.close(descriptor)
    }
}

extension ClientStream {
    private func serve(_ readiness: Readiness) {
        if readiness.contains(.loopStopped) {
            return fail(StreamError(code: .streamLoopStopped, message: "the loop has stopped"))
        }
        if !isConnected {
            guard finishConnect(readiness) else { return }
        }
        if !readiness.isDisjoint(with: [.readable, .readClosed, .hungUp, .failed]) { read() }
        if !isClosed { flush() }
    }

    private func finishConnect(_ readiness: Readiness) -> Bool {
        let pending = Socket.pendingError(descriptor)
        // A Unix socket that nobody listens on has no error of its own: it is hung up from the start.
        guard pending == 0, !readiness.contains(.hungUp) else {
            let error = IOError("connect", errno: pending == 0 ? ECONNREFUSED : pending)
            fail(StreamError(code: .streamRefused, message: error.description))
            return false
        }
        isConnected = true
        guard engine != nil else {
            tell(.opened)
            return !isClosed
        }
        do {
            try engine?.start()
        } catch {
            fail(StreamError(error))
            return false
        }
        engine?.takeCiphertext(into: &output)
        return true
    }

    private func read() {
        for _ in 0..<ClientStream.readsInARow {
            guard !isClosed else { return }
            let result = readOnce()
            if result > 0 { continue }
            if result == 0 {
                return fail(StreamError(code: .streamClosed, message: "the peer closed the connection"))
            }
            let reason = martlet_errno()
            if reason == EAGAIN { return }
            if reason != EINTR { return fail(StreamError(IOError("recv", errno: reason))) }
        }
    }

    /// One `recv` and what follows from it; its result.
    private func readOnce() -> Int {
        let descriptor = self.descriptor
        guard engine != nil else {
            let count = receive(into: &input, from: descriptor)
            if count > 0 { tell(.received) }
            return count
        }
        var wire = ByteBuffer()
        let count = receive(into: &wire, from: descriptor)
        if count > 0 { decrypt(wire) }
        return count
    }

    private func receive(into buffer: inout ByteBuffer, from descriptor: Int32) -> Int {
        var count = 0
        _ = unsafe buffer.fill(room: ClientStream.readBytes) { room in
            count = unsafe recv(descriptor, room.baseAddress, room.count, 0)
            return count
        }
        return count
    }

    private func decrypt(_ wire: borrowing ByteBuffer) {
        let before = input.count
        do {
            try unsafe engine?.receive(wire.bytes, plaintext: &input)
        } catch {
            engine?.takeCiphertext(into: &output)
            _ = write()
            return fail(StreamError(error))
        }
        engine?.takeCiphertext(into: &output)
        if !isOpen, engine?.isEstablished == true { tell(.opened) }
        if !isClosed, input.count > before { tell(.received) }
        if !isClosed, engine?.isPeerClosed == true {
            fail(StreamError(code: .streamClosed, message: "the peer closed the connection"))
        }
    }

    /// Writes what the kernel takes and watches for room when something is left.
    private func flush() {
        let reason = write()
        guard reason == 0 || reason == EAGAIN else { return fail(StreamError(IOError("send", errno: reason))) }
        do {
            try registration?.watch(output.isEmpty ? [.readable, .readClosed] : [.readable, .readClosed, .writable])
        } catch {
            fail(StreamError(error))
        }
    }

    /// - Returns: 0 when all is written, otherwise the reason why not.
    private func write() -> Int32 {
        while !output.isEmpty {
            let bytes = unsafe output.bytes
            let count = unsafe CLinux.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
            if count > 0 {
                output.consume(count)
                continue
            }
            let reason = martlet_errno()
            if reason != EINTR { return reason }
        }
        return 0
    }

    private func tell(_ event: Event) {
        if case .opened = event { isOpen = true }
        handler?(event)
    }

    private func fail(_ error: StreamError) {
        guard !isClosed else { return }
        let handler = self.handler
        close()
        handler?(.closed(error))
    }
}
