private import CLinux
package import MartletCore
package import MartletTLS

/// Why a stream to a server ended.
package struct StreamError: CodedError {
    package let code: ErrorCode
    package let message: String

    package init(code: ErrorCode, message: String) {
        self.code = code
        self.message = message
    }

    init(_ error: IOError) { self.init(code: .streamFailed, message: error.description) }
    init(_ error: TLSError) { self.init(code: error.code, message: error.message) }
}

extension ErrorCode {
    /// The connection was refused, or the address is unreachable.
    package static let streamRefused: ErrorCode = "io.connect_refused"
    /// The peer closed the connection.
    package static let streamClosed: ErrorCode = "io.closed_by_peer"
    /// A system call on the connection failed.
    package static let streamFailed: ErrorCode = "io.stream_failed"
    /// The loop that served the connection has stopped.
    package static let streamLoopStopped: ErrorCode = "io.loop_stopped"
}

/// A byte stream to a server on a service loop: TCP or a Unix socket, with or without TLS.
///
/// Confined to its loop. Limits are up to the owner: it consumes all of `input` at each `received`, stops sending when
/// `unsentBytes` grows, and sets the timeouts.
package final class ClientStream {
    /// The events that the owner gets; none follows `closed` or the owner's own `close()`.
    package enum Event {
        /// Connected; with TLS, the peer's certificate has been verified.
        case opened
        /// `input` has grown.
        case received
        case closed(StreamError)
    }

    /// Bytes per `recv`, and the maximum number of reads before other descriptors are served.
    private static let readBytes = 16 * 1024
    private static let readsPerEvent = 4

    /// Received bytes that the owner has not consumed yet.
    package var input = ByteBuffer()

    private let loop: ServiceLoop
    private let descriptor: Int32
    private var engine: TLSEngine?
    private var output = ByteBuffer()
    private var registration: LoopRegistration?
    private var handler: ((Event) -> Void)?
    private var isConnected = false
    private var isOpen = false
    private var isClosed = false

    /// Starts to connect; no event is delivered from within this call.
    package init(
        to endpoint: SocketEndpoint, on loop: ServiceLoop, engine: consuming TLSEngine?,
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

    deinit { assert(isClosed, "a stream must be closed before it is released") }

    /// The number of buffered bytes that have not been written to the socket.
    package var unsentBytes: Int { output.count }

    /// Sends bytes, or buffers them until the socket is writable.
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
            engine?.dequeueCiphertext(into: &output)
        }
        if isConnected { flush() }
    }

    /// Closes the stream without a further event. Idempotent.
    package func close() {
        loop.preconditionInLoop()
        guard !isClosed else { return }
        isClosed = true
        handler = nil
        engine?.close()
        engine?.dequeueCiphertext(into: &output)
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
        // A Unix socket without a listener reports no error: it is hung up from the start.
        guard pending == 0, !readiness.contains(.hungUp) else {
            let error = IOError("connect", errno: pending == 0 ? ECONNREFUSED : pending)
            fail(StreamError(code: .streamRefused, message: error.description))
            return false
        }
        isConnected = true
        guard engine != nil else {
            notify(.opened)
            return !isClosed
        }
        do {
            try engine?.start()
        } catch {
            fail(StreamError(error))
            return false
        }
        engine?.dequeueCiphertext(into: &output)
        return true
    }

    private func read() {
        for _ in 0..<ClientStream.readsPerEvent {
            guard !isClosed else { return }
            let result = readOnce()
            if result > 0 { continue }
            if result == 0 {
                return fail(StreamError(code: .streamClosed, message: "the peer closed the connection"))
            }
            let reason = martlet_errno()
            return reason == EAGAIN ? () : fail(StreamError(IOError("recv", errno: reason)))
        }
    }

    /// Calls `recv` once, processes the bytes, and returns the result of the call.
    private func readOnce() -> Int {
        let descriptor = self.descriptor
        guard engine != nil else {
            let count = receive(into: &input, from: descriptor)
            if count > 0 { notify(.received) }
            return count
        }
        var ciphertext = ByteBuffer()
        let count = receive(into: &ciphertext, from: descriptor)
        if count > 0 { decrypt(ciphertext) }
        return count
    }

    private func receive(into buffer: inout ByteBuffer, from descriptor: Int32) -> Int {
        var count = 0
        _ = unsafe buffer.fill(capacity: ClientStream.readBytes) { free in
            count = unsafe martlet_receive(descriptor, free.baseAddress, free.count, 0)
            return count
        }
        return count
    }

    private func decrypt(_ ciphertext: borrowing ByteBuffer) {
        let before = input.count
        do {
            try unsafe engine?.receive(ciphertext.bytes, plaintext: &input)
        } catch {
            engine?.dequeueCiphertext(into: &output)
            _ = write()
            return fail(StreamError(error))
        }
        engine?.dequeueCiphertext(into: &output)
        if !isOpen, engine?.isEstablished == true { notify(.opened) }
        if !isClosed, input.count > before { notify(.received) }
        if !isClosed, engine?.isPeerClosed == true {
            fail(StreamError(code: .streamClosed, message: "the peer closed the connection"))
        }
    }

    /// Writes what the socket accepts, and waits for writability when bytes are left.
    private func flush() {
        let reason = write()
        guard reason == 0 || reason == EAGAIN else { return fail(StreamError(IOError("send", errno: reason))) }
        do {
            try registration?.watch(output.isEmpty ? [.readable, .readClosed] : [.readable, .readClosed, .writable])
        } catch {
            fail(StreamError(error))
        }
    }

    /// - Returns: 0 when everything was written, otherwise `errno`.
    private func write() -> Int32 {
        while !output.isEmpty {
            let bytes = unsafe output.bytes
            let count = unsafe martlet_send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
            guard count > 0 else { return martlet_errno() }
            output.consume(count)
        }
        return 0
    }

    private func notify(_ event: Event) {
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
