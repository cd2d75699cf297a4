import CLinux
import Glibc
import MartletCore
import MartletHTTP2
import MartletTLS
import MartletTesting
import Testing

@testable import MartletProxy

/// A transport over one end of a pair of sockets, and the other end.
private struct Connected: ~Copyable {
    var transport = Transport()
    let peer: Int32

    init() {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        unsafe #expect(socketpair(AF_UNIX, type, 0, &ends) == 0)
        transport.open(ends[0])
        peer = ends[1]
    }

    deinit {
        Glibc.close(transport.fd)
        Glibc.close(peer)
    }

    mutating func send(_ bytes: [UInt8], now: Int64 = 1) -> Transport.WriteOutcome {
        unsafe bytes.withUnsafeBufferPointer { unsafe transport.send($0, now: now) }
    }

    mutating func encryptAndSend(_ bytes: [UInt8]) -> Transport.WriteOutcome {
        unsafe bytes.withUnsafeBufferPointer { unsafe transport.encryptAndSend($0, now: 1) }
    }

    mutating func decrypt(_ bytes: [UInt8], into plaintext: inout ByteBuffer) -> TLSError? {
        unsafe bytes.withUnsafeBufferPointer { unsafe transport.decrypt($0, into: &plaintext) }
    }

    /// Everything that the peer can read now.
    func read() -> [UInt8] {
        var all: [UInt8] = []
        var bytes = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = unsafe recv(peer, &bytes, bytes.count, 0)
            guard count > 0 else { return all }
            all += bytes[..<count]
        }
    }

    func write(_ bytes: [UInt8]) {
        unsafe #expect(Glibc.send(peer, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count)
    }

    /// Whether the peer has reached the end of the stream.
    var isEnded: Bool {
        var byte: UInt8 = 0
        return unsafe recv(peer, &byte, 1, 0) == 0
    }

    /// Sends until the kernel accepts no more.
    mutating func fill() -> [UInt8] {
        var sent: [UInt8] = []
        let piece = Payload.bytes(50_000)
        while true {
            sent += piece
            if send(piece) != .sent { return sent }
        }
    }
}

@Suite struct `Transport in clear text` {
    @Test func `sends what the kernel accepts, and keeps nothing`() {
        var connection = Connected()
        let outcome = connection.send([1, 2, 3])
        let (isEmpty, received) = (connection.transport.output.isEmpty, connection.read())
        #expect(outcome == .sent && isEmpty && received == [1, 2, 3])
    }

    @Test func `buffers what the kernel does not accept, and sends it in order`() {
        var connection = Connected()
        var sent = connection.fill()
        let later = connection.send([7, 7, 7], now: 5)
        sent += [7, 7, 7]
        #expect(later == .buffered)
        // It did not ask the kernel: the time is that of the first bytes that it did not accept.
        let (writtenAt, blocked) = (connection.transport.lastWriteAt, connection.transport.flush(now: 6))
        #expect(writtenAt == 1 && blocked == .blocked)
        var received = connection.read()
        var outcomes: [Transport.WriteOutcome] = []
        while outcomes.last != .sent, outcomes.count < 100 {
            outcomes.append(connection.transport.flush(now: 9))
            received += connection.read()
        }
        let (isEmpty, flushedAt) = (connection.transport.output.isEmpty, connection.transport.lastWriteAt)
        #expect(received == sent && isEmpty && flushedAt == 9)
        #expect(outcomes.dropLast().allSatisfy { $0 == .buffered })
    }

    @Test func `has nothing to flush at first`() {
        var connection = Connected()
        let (outcome, writtenAt) = (connection.transport.flush(now: 3), connection.transport.lastWriteAt)
        #expect(outcome == .sent && writtenAt == 0)
    }

    @Test func `sends two pieces with one call`() {
        let connection = Connected()
        let first: [UInt8] = [1, 2]
        let second: [UInt8] = [3]
        let sent = unsafe first.withUnsafeBufferPointer { first in
            unsafe second.withUnsafeBufferPointer { second in unsafe connection.transport.send(first, second) }
        }
        let received = connection.read()
        #expect(sent == 3 && received == [1, 2, 3])
    }

    @Test func `reports a peer that is gone`() {
        var connection = Connected()
        #expect(shutdown(connection.peer, Int32(SHUT_RDWR)) == 0)
        let outcome = connection.send([1])
        #expect(outcome == .failed)
        let buffer = ReceiveBuffer()
        let read = connection.transport.receive(into: buffer)
        #expect(read == .closed)
    }

    @Test func `reports a failure while bytes wait`() {
        var connection = Connected()
        _ = connection.fill()
        _ = shutdown(connection.peer, Int32(SHUT_RDWR))
        let outcome = connection.transport.flush(now: 1)
        #expect(outcome == .failed)
    }

    @Test func `reads what there is`() {
        var connection = Connected()
        let buffer = ReceiveBuffer()
        let empty = connection.transport.receive(into: buffer)
        #expect(empty == .blocked)
        connection.write([5, 6])
        let (some, isBulk) = (connection.transport.receive(into: buffer), connection.transport.isBulk)
        #expect(some == .bytes(2) && !isBulk)
        unsafe #expect(Array(buffer.bytes(2)) == [5, 6])
        connection.write(Payload.bytes(ReceiveBuffer.size))
        let (full, isFull) = (connection.transport.receive(into: buffer), connection.transport.isBulk)
        #expect(full == .bytes(ReceiveBuffer.size) && isFull)
        _ = shutdown(connection.peer, Int32(SHUT_WR))
        let end = connection.transport.receive(into: buffer)
        #expect(end == .closed)
    }

    @Test func `reports a socket that is none`() {
        var transport = Transport()
        transport.open(-1)
        let buffer = ReceiveBuffer()
        let (read, isRegistered) = (transport.receive(into: buffer), transport.isRegistered)
        #expect(read == .failed && isRegistered)
    }

    @Test func `closes the writing direction after what was sent`() {
        var connection = Connected()
        let sent = connection.send([9])
        connection.transport.closeWrite()
        let (received, isEnded) = (connection.read(), connection.isEnded)
        #expect(sent == .sent && received == [9] && isEnded)
    }

    @Test func `starts over with another socket`() {
        var connection = Connected()
        let fd = connection.transport.fd
        connection.transport.isSecure = true
        connection.transport.isRegistered = true
        connection.transport.isBulk = true
        connection.transport.isReadClosed = true
        connection.transport.mayHaveUnread = true
        connection.transport.open(fd)
        let transport = (
            connection.transport.isSecure, connection.transport.isRegistered, connection.transport.isBulk,
            connection.transport.isReadClosed, connection.transport.mayHaveUnread
        )
        #expect(transport == (false, false, false, false, false))
    }
}

@Suite struct `Transport with TLS` {
    private let certificates: TestAuthority

    init() throws { certificates = try TestAuthority() }

    /// A transport with a server's engine, and a client's engine at the other end.
    private struct Pair: ~Copyable {
        var server: Connected
        var client: TLSEngine
    }

    private func established() throws -> Pair {
        var connection = Connected()
        connection.transport.isSecure = true
        connection.transport.engine = try certificates.server.makeEngine()
        var client = try certificates.client.makeEngine(serverName: "a.example.com")
        try client.start()
        var plaintext = ByteBuffer()
        for _ in 0..<4 {
            var flight = ByteBuffer()
            client.dequeueCiphertext(into: &flight)
            let failure = connection.decrypt(flight.array, into: &plaintext)
            #expect(failure == nil)
            _ = connection.transport.flush(now: 1)
            let reply = connection.read()
            guard !reply.isEmpty else { continue }
            try unsafe reply.withUnsafeBufferPointer { reply throws(TLSError) in
                try unsafe client.receive(reply, plaintext: &plaintext)
            }
        }
        let isEstablished = connection.transport.engine?.isEstablished == true && client.isEstablished
        #expect(isEstablished)
        return Pair(server: connection, client: client)
    }

    @Test func `encrypts what it sends and decrypts what it gets`() throws {
        var pair = try established()
        let payload = Payload.bytes(40_000)
        let sent = pair.server.encryptAndSend(payload)
        #expect(sent == .sent)
        var received = ByteBuffer()
        let records = pair.server.read()
        try unsafe records.withUnsafeBufferPointer { records throws(TLSError) in
            try unsafe pair.client.receive(records, plaintext: &received)
        }
        #expect(received.array == payload)

        let request: [UInt8] = Array("hello".utf8)
        try unsafe request.withUnsafeBufferPointer { request throws(TLSError) in try unsafe pair.client.send(request) }
        var ciphertext = ByteBuffer()
        pair.client.dequeueCiphertext(into: &ciphertext)
        var plaintext = ByteBuffer()
        let failure = pair.server.decrypt(ciphertext.array, into: &plaintext)
        let hasReply = !pair.server.transport.output.isEmpty
        #expect(failure == nil && plaintext.array == request && !hasReply)
    }

    @Test func `puts the alert of a failure into the output`() throws {
        var pair = try established()
        var plaintext = ByteBuffer()
        let failure = pair.server.decrypt([23, 3, 3, 0, 4, 1, 2, 3, 4], into: &plaintext)
        let hasAlert = !pair.server.transport.output.isEmpty
        #expect(failure != nil && hasAlert && plaintext.isEmpty)
    }

    @Test func `announces its end with close_notify`() throws {
        var pair = try established()
        pair.server.transport.closeWrite()
        let alert = pair.server.read()
        var plaintext = ByteBuffer()
        try unsafe alert.withUnsafeBufferPointer { alert throws(TLSError) in
            try unsafe pair.client.receive(alert, plaintext: &plaintext)
        }
        let (isPeerClosed, isEnded) = (pair.client.isPeerClosed, pair.server.isEnded)
        #expect(isPeerClosed && isEnded && plaintext.isEmpty)
    }
}

@Suite struct `Frames over a transport` {
    @Test func `are sent until there are none`() throws {
        var connection = Connected()
        let session = try HTTP2Session.server(HTTP2Options(), pool: HTTP2MemoryPool())
        defer { session.free() }
        var frames = ByteBuffer()
        let first = connection.transport.sendFrames(of: session, by: &frames, now: 1)
        let settings = connection.read()
        // SETTINGS, on stream 0 (RFC 9113 §6.5).
        #expect(first == .sent && settings.count > 9 && settings[3] == 4)
        let second = connection.transport.sendFrames(of: session, by: &frames, now: 1)
        #expect(second == nil && connection.read().isEmpty)
    }

    @Test func `are buffered when the kernel takes some and then no more`() throws {
        var connection = Connected()
        var size: Int32 = 8192
        let option = socklen_t(MemoryLayout<Int32>.size)
        unsafe #expect(setsockopt(connection.transport.fd, SOL_SOCKET, SO_SNDBUF, &size, option) == 0)
        var options = HTTP2Options()
        options.initialWindow = 1 << 20
        let client = try HTTP2Session.client(options, pool: HTTP2MemoryPool())
        let server = try HTTP2Session.server(HTTP2Options(), pool: HTTP2MemoryPool())
        defer {
            client.free()
            server.free()
        }
        let request = Array("GET / HTTP/1.1\r\nHost: a\r\n\r\n".utf8)
        let submitted = unsafe request.withUnsafeBufferPointer {
            unsafe client.submitRequest($0, isSecure: false, ends: true, acceptsTrailers: false)
        }
        let id = try #require(submitted)
        var bytes = ByteBuffer()
        client.takeOutput(into: &bytes, upTo: 1 << 20)
        let isIntact = unsafe server.receive(bytes.bytes, now: 1)
        #expect(isIntact)
        while server.nextEvent() != nil {}
        let head = Array("HTTP/1.1 200 OK\r\n\r\n".utf8)
        unsafe head.withUnsafeBufferPointer { unsafe server.submitHead(id, $0, ends: false) }
        let body = Payload.bytes(200_000)
        unsafe body.withUnsafeBufferPointer { unsafe server.send(id, $0) }
        var frames = ByteBuffer()
        // The write deadline begins with the first part, whatever the last call returned.
        let outcome = connection.transport.sendFrames(of: server, by: &frames, now: 1)
        let (received, unsent) = (connection.read().count, connection.transport.output.count)
        #expect(outcome == .buffered && received > 0 && unsent > 0)
    }

    @Test func `stay with the session while much is unsent`() throws {
        var connection = Connected()
        let session = try HTTP2Session.server(HTTP2Options(), pool: HTTP2MemoryPool())
        defer { session.free() }
        _ = connection.fill()
        while connection.transport.output.count < Transport.frameBatchBytes {
            _ = connection.send(Payload.bytes(50_000))
        }
        var frames = ByteBuffer()
        let (outcome, hasOutput) = (
            connection.transport.sendFrames(of: session, by: &frames, now: 1), session.hasOutput
        )
        #expect(outcome == nil && hasOutput)
    }
}

/// A server's and a client's context that trust each other.
private struct TestAuthority {
    let server: TLSServerContext
    let client: TLSClientContext

    init() throws {
        let authority = try CertificateAuthority()
        let issued = try authority.issue("a", ["DNS:a.example.com"])
        server = try TLSServerContext(
            TLSServerOptions(
                identities: [TLSIdentityFiles(certificateFile: issued.certificateFile, keyFile: issued.keyFile)]),
            tickets: TLSTicketKeys(clock: .system))
        client = try TLSClientContext(TLSClientOptions(trust: .file(authority.certificateFile)))
    }
}
