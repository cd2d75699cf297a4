private import COpenSSL
package import MartletCore
internal import MartletCrypto

/// An application protocol that is negotiated by ALPN (RFC 7301).
package enum TLSApplicationProtocol: Sendable, Hashable {
    case http1, http2

    /// The protocol identifier of ALPN.
    var name: StaticString {
        switch self {
        case .http1: "http/1.1"
        case .http2: "h2"
        }
    }
}

/// One TLS connection without a socket: decrypts received ciphertext and encrypts plaintext to send.
///
/// The owner passes received bytes to `receive` and plaintext to `send`, and writes the result of `dequeueCiphertext`
/// to the socket, also after an error: it may contain the alert for the peer.
@safe package struct TLSEngine: ~Copyable {
    /// The maximum plaintext of one record.
    private static let recordBytes = 16 * 1024
    /// The minimum capacity for a read.
    private static let smallRead = 256

    private let ssl: OpaquePointer
    private let memory: UnsafeMutablePointer<MemoryBIO>
    /// The context, which OpenSSL's callbacks use as long as the connection exists.
    private let owner: AnyObject
    private let verifies: Bool
    /// A client's first record until it is complete: OpenSSL allocates about 36 KiB for an incomplete one.
    private var hello: TLSHello?
    /// The remaining bytes allowed for the peer's handshake; `nil` uses OpenSSL's limits.
    private var allowance: Int?
    /// Plaintext sent before the handshake completed.
    private var early: [UInt8] = []
    package private(set) var hasFailed = false

    /// The handshake has completed and the peer has been verified.
    package private(set) var isEstablished = false
    /// The peer has sent close_notify; an end of stream without it is a truncation.
    package private(set) var isPeerClosed = false

    /// Takes ownership of a connection and attaches a memory BIO to it.
    /// - Parameter allowance: the maximum bytes of a client's handshake; `nil` for the engine of a client.
    @unsafe init(
        adopting ssl: OpaquePointer, of owner: AnyObject, verifies: Bool, allowance: Int? = nil
    ) throws(TLSError) {
        self.allowance = allowance
        hello = allowance == nil ? nil : TLSHello()
        unsafe self.ssl = ssl
        self.owner = owner
        self.verifies = verifies
        unsafe memory = .allocate(capacity: 1)
        unsafe memory.initialize(to: MemoryBIO())
        // If this fails, deinit runs: all properties are set by now.
        guard let bio = unsafe MemoryBIO.makeBIO(on: memory) else { throw TLSError(.tlsSetUpFailed, "no memory") }
        unsafe SSL_set_bio(ssl, bio, bio)
    }

    deinit {
        // Sessions stay resumable however the connection ends; OpenSSL would invalidate them without close_notify.
        if !hasFailed { unsafe SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN) }
        unsafe SSL_free(ssl)
        unsafe memory.deinitialize(count: 1)
        unsafe memory.deallocate()
    }

    /// Starts the handshake; a client's first flight can then be dequeued.
    package mutating func start() throws(TLSError) { try advance() }

    /// Processes received bytes and appends the plaintext.
    ///
    /// All bytes are consumed; OpenSSL buffers an incomplete record.
    /// - Throws: one of the `tls.` codes for an invalid handshake or record; the engine cannot be used afterwards.
    package mutating func receive(
        _ ciphertext: UnsafeBufferPointer<UInt8>, plaintext: inout ByteBuffer
    ) throws(TLSError) {
        guard !hasFailed else { throw TLSError(code: .tlsProtocolError, message: "the connection has failed") }
        if unsafe bufferClientHello(ciphertext) { return }
        // Not `Optional.take()`: in unoptimized builds it does not leave `nil` for a noncopyable type.
        var buffered: TLSHello?
        swap(&buffered, &hello)
        guard var hello = buffered else { return try unsafe process(ciphertext, &plaintext) }
        unsafe hello.append(ciphertext)
        try unsafe hello.withBytes { bytes throws(TLSError) in try unsafe process(bytes, &plaintext) }
    }

    /// Buffers bytes of a client's first record while it is incomplete, without any computation.
    /// - Returns: `false` when the record is complete; the bytes are then not buffered but left for `receive`.
    package mutating func bufferClientHello(_ ciphertext: UnsafeBufferPointer<UInt8>) -> Bool {
        guard unsafe hello?.isReady(with: ciphertext) == false else { return false }
        unsafe hello?.append(ciphertext)
        return true
    }

    private mutating func process(
        _ ciphertext: UnsafeBufferPointer<UInt8>, _ plaintext: inout ByteBuffer
    ) throws(TLSError) {
        unsafe memory.pointee.lend(ciphertext)
        defer { unsafe memory.pointee.endLoan() }
        if !isEstablished {
            try advance()
            if !isEstablished, let left = allowance {
                guard ciphertext.count <= left else {
                    hasFailed = true
                    throw TLSError(
                        code: .tlsHandshakeTooLarge, message: "the peer's handshake is too large")
                }
                allowance = left - ciphertext.count
            }
        }
        guard isEstablished else { return }
        try decrypt(into: &plaintext)
    }

    /// Encrypts bytes; bytes sent before the handshake has completed are buffered until then.
    package mutating func send(_ plaintext: UnsafeBufferPointer<UInt8>) throws(TLSError) {
        guard !hasFailed else { throw TLSError(code: .tlsProtocolError, message: "the connection has failed") }
        guard isEstablished else { return unsafe early.append(contentsOf: plaintext) }
        try unsafe encrypt(plaintext)
    }

    /// Queues close_notify.
    package mutating func close() {
        guard isEstablished, !hasFailed else { return }
        _ = unsafe SSL_shutdown(ssl)
        ERR_clear_error()
    }

    /// Whether there is ciphertext to dequeue.
    package var hasCiphertext: Bool { unsafe !memory.pointee.output.isEmpty }

    /// Moves the ciphertext to be sent to the end of `buffer`.
    package mutating func dequeueCiphertext(into buffer: inout ByteBuffer) {
        guard hasCiphertext else { return }
        if buffer.isEmpty {
            unsafe swap(&buffer, &memory.pointee.output)
        } else {
            unsafe buffer.append(memory.pointee.output.bytes)
        }
        unsafe memory.pointee.output.release()
    }

    /// The negotiated version, such as `TLSv1.3`.
    package var version: String { unsafe String(cString: SSL_get_version(ssl)) }

    /// The negotiated cipher, by OpenSSL's name; empty before it is negotiated.
    package var cipher: String {
        guard let cipher = unsafe SSL_get_current_cipher(ssl), let name = unsafe SSL_CIPHER_get_name(cipher) else {
            return ""
        }
        return unsafe String(cString: name)
    }

    /// The protocol negotiated by ALPN; `nil` without ALPN.
    package var applicationProtocol: TLSApplicationProtocol? {
        var name: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        unsafe SSL_get0_alpn_selected(ssl, &name, &count)
        guard let name = unsafe name, count > 0 else { return nil }
        return unsafe ALPN.protocolNamed(UnsafeBufferPointer(start: name, count: Int(count)))
    }

    /// The host name in the client's SNI extension, as received.
    package var serverName: String? {
        unsafe SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name).map { unsafe String(cString: $0) }
    }

    /// The certificate that the peer sent, in DER; after a resumption, the one of the original handshake.
    ///
    /// A server has it only if it asks for client certificates, and it was verified in the handshake.
    package var peerCertificate: [UInt8]? {
        guard let certificate = unsafe SSL_get0_peer_certificate(ssl) else { return nil }
        return unsafe ParsedCertificate.encoded(certificate)
    }

    /// Whether the handshake resumed an earlier session, without certificates.
    package var isResumed: Bool { unsafe martlet_tls_is_resumed(ssl) == 1 }
}

// One owner at a time; OpenSSL binds no connection to a thread, and locks what connections share of their context.
extension TLSEngine: @unchecked Sendable {}

extension TLSEngine {
    private mutating func advance() throws(TLSError) {
        ERR_clear_error()
        let status = unsafe SSL_do_handshake(ssl)
        guard status == 1 else {
            if unsafe SSL_get_error(ssl, status) == SSL_ERROR_WANT_READ { return }
            throw handshakeFailure()
        }
        isEstablished = true
        guard !early.isEmpty else { return }
        let waiting = early
        early = []
        try unsafe waiting.withUnsafeBufferPointer { bytes throws(TLSError) in try unsafe encrypt(bytes) }
    }

    private mutating func handshakeFailure() -> TLSError {
        hasFailed = true
        let result = Int32(clamping: unsafe SSL_get_verify_result(ssl))
        guard verifies, result != X509_V_OK else { return .handshake() }
        let reason = unsafe String(cString: X509_verify_cert_error_string(Int(result)))
        ERR_clear_error()
        let code: ErrorCode =
            switch result {
            case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH: .tlsNameMismatch
            case X509_V_ERR_CERT_HAS_EXPIRED, X509_V_ERR_CERT_NOT_YET_VALID: .tlsCertificateExpired
            default: .tlsCertificateUntrusted
            }
        return TLSError(code: code, message: "the peer's certificate: \(reason)")
    }

    private mutating func decrypt(into plaintext: inout ByteBuffer) throws(TLSError) {
        while true {
            ErrorQueue.clear()
            let ssl = unsafe self.ssl
            let waiting = unsafe max(Int(SSL_pending(ssl)), memory.pointee.inputCount)
            var status: Int32 = 0
            let capacity = min(max(waiting, TLSEngine.smallRead), TLSEngine.recordBytes)
            _ = unsafe plaintext.fill(capacity: capacity) { free in
                status = unsafe SSL_read(ssl, free.baseAddress, Int32(clamping: free.count))
                return Int(max(status, 0))
            }
            if status > 0 {
                if unsafe SSL_pending(ssl) == 0, unsafe memory.pointee.inputCount == 0 { return }
                continue
            }
            switch unsafe SSL_get_error(ssl, status) {
            case SSL_ERROR_WANT_READ: return
            case SSL_ERROR_ZERO_RETURN:
                isPeerClosed = true
                return
            default: throw fail(.tlsProtocolError, "TLS record")
            }
        }
    }

    private mutating func encrypt(_ plaintext: UnsafeBufferPointer<UInt8>) throws(TLSError) {
        guard let base = plaintext.baseAddress else { return }
        var offset = 0
        while offset < plaintext.count {
            ErrorQueue.clear()
            let count = Int32(clamping: plaintext.count - offset)
            let written = unsafe SSL_write(ssl, base + offset, count)
            guard written > 0 else { throw fail(.tlsProtocolError, "TLS write") }
            offset += Int(written)
        }
    }

    private mutating func fail(_ code: ErrorCode, _ what: String) -> TLSError {
        hasFailed = true
        return TLSError(code, what)
    }
}
