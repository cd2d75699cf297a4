private import CLinux
internal import MartletCore
internal import MartletTLS

/// A socket, and what is between it and the HTTP that it carries: TLS, and the bytes that the kernel has not accepted
/// yet.
///
/// It reads and writes, and returns the outcome; its owner decides what follows.
struct Transport: ~Copyable {
    /// The socket; −1 for none, as for a stream of an HTTP/2 connection.
    var fd: Int32 = -1
    var isSecure = false
    /// Registered with the poller; also `true` where there is no socket.
    var isRegistered = false
    /// The TLS engine; `nil` in clear text, and while a thread runs a step of the handshake.
    var engine: TLSEngine?
    /// Bytes for the socket that the kernel has not accepted yet: ciphertext where the connection uses TLS.
    var output = ByteBuffer()
    /// When the kernel last accepted some of them.
    var lastWriteAt: Int64 = 0
    /// The last read filled the buffer.
    var isBulk = false
    /// The peer has closed its sending side.
    var isReadClosed = false
    /// The kernel may have unread bytes although no further event will say so.
    var mayHaveUnread = false

    /// Starts over with another socket.
    mutating func open(_ fd: Int32) {
        self.fd = fd
        isSecure = false
        isRegistered = fd < 0
        isBulk = false
        isReadClosed = false
        mayHaveUnread = false
    }

    /// Frees the memory of a connection that ended; the socket is closed by its owner.
    mutating func close() {
        fd = -1
        engine = nil
        output.release()
    }

    // MARK: Reading

    /// What a read returned.
    enum ReadOutcome: Equatable {
        /// So many bytes are in the buffer.
        case bytes(Int)
        /// The peer has closed its sending side.
        case closed
        /// There is nothing to read now.
        case blocked
        /// The connection has failed.
        case failed
    }

    /// Reads once.
    @inline(__always)
    mutating func receive(into buffer: borrowing ReceiveBuffer) -> ReadOutcome {
        let count = buffer.receive(from: fd)
        if count > 0 {
            isBulk = count == ReceiveBuffer.size
            return .bytes(count)
        }
        if count == 0 { return .closed }
        return martlet_errno() == EAGAIN ? .blocked : .failed
    }

    /// Collects what the engine wants to send in ``output``.
    mutating func takeCiphertext() { engine?.dequeueCiphertext(into: &output) }

    /// Decrypts TLS records, and collects the engine's own replies in ``output``: to a key update, or the alert that
    /// says why the connection failed.
    /// - Returns: why the connection failed, if it did.
    mutating func decrypt(_ records: UnsafeBufferPointer<UInt8>, into plaintext: inout ByteBuffer) -> TLSError? {
        var failure: TLSError?
        do throws(TLSError) {
            try unsafe engine?.receive(records, plaintext: &plaintext)
        } catch {
            failure = error
        }
        if failure != nil || engine?.hasCiphertext == true { engine?.dequeueCiphertext(into: &output) }
        return failure
    }

    // MARK: Writing

    /// The outcome of sending bytes.
    enum WriteOutcome: Equatable {
        /// The kernel has accepted everything.
        case sent
        /// The kernel has accepted some; the rest is in ``Transport/output``.
        case buffered
        /// The kernel has accepted nothing.
        case blocked
        /// The connection has failed.
        case failed
    }

    /// Sends bytes in clear text, and buffers what the kernel does not accept.
    ///
    /// - Parameter isLast: a FIN follows immediately: the kernel holds the bytes so that both go in one packet.
    @inline(__always)
    mutating func send(_ bytes: UnsafeBufferPointer<UInt8>, isLast: Bool = false, now: Int64) -> WriteOutcome {
        var sent = 0
        if output.isEmpty {
            let flags = isLast ? martlet_more_follows : Int32(MSG_NOSIGNAL)
            sent = unsafe martlet_send(fd, bytes.baseAddress, bytes.count, flags)
            if sent == bytes.count { return .sent }
            if sent < 0 {
                guard martlet_errno() == EAGAIN else { return .failed }
                sent = 0
            }
            lastWriteAt = now
        }
        unsafe output.append(UnsafeBufferPointer(rebasing: bytes[sent...]))
        return .buffered
    }

    /// Sends two pieces in clear text with one call, where nothing is unsent; buffers nothing.
    /// - Returns: how many bytes the kernel has accepted; `nil` when the connection has failed.
    @inline(__always)
    func send(_ first: UnsafeBufferPointer<UInt8>, _ second: UnsafeBufferPointer<UInt8>) -> Int? {
        let sent = unsafe martlet_send_two(fd, first.baseAddress, first.count, second.baseAddress, second.count)
        if sent >= 0 { return sent }
        return martlet_errno() == EAGAIN ? 0 : nil
    }

    /// Encrypts bytes and sends them, and buffers what the kernel does not accept.
    mutating func encryptAndSend(_ bytes: UnsafeBufferPointer<UInt8>, now: Int64) -> WriteOutcome {
        if output.isEmpty { lastWriteAt = now }
        guard unsafe encrypt(bytes) else { return .failed }
        return flush(now: now)
    }

    /// Encrypts bytes into ``output``.
    /// - Returns: whether the connection is intact.
    mutating func encrypt(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        do throws(TLSError) {
            try unsafe engine?.send(bytes)
        } catch {
            return false
        }
        engine?.dequeueCiphertext(into: &output)
        return true
    }

    /// Sends what is unsent.
    mutating func flush(now: Int64) -> WriteOutcome {
        guard !output.isEmpty else { return .sent }
        let bytes = unsafe output.bytes
        let sent = unsafe martlet_send(fd, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        if sent < 0 { return martlet_errno() == EAGAIN ? .blocked : .failed }
        output.consume(sent)
        lastWriteAt = now
        guard output.isEmpty else { return .buffered }
        output.release()
        return .sent
    }

    /// Closes the writing direction, with close_notify, so that the end is not taken for a truncation (RFC 8446 §6.1).
    mutating func closeWrite() {
        if engine != nil, output.isEmpty {
            engine?.close()
            engine?.dequeueCiphertext(into: &output)
            let bytes = unsafe output.bytes
            _ = unsafe martlet_send(fd, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
            output.release()
        }
        _ = shutdown(fd, Int32(SHUT_WR))
    }
}
