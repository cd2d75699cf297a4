private import COpenSSL
package import MartletCore

/// What two sides agree on by ALPN (RFC 7301) to speak under TLS.
package enum TLSApplicationProtocol: Sendable, Hashable {
    case http1, http2

    /// The name on the wire.
    var name: StaticString {
        switch self {
        case .http1: "http/1.1"
        case .http2: "h2"
        }
    }
}

/// One TLS connection without a socket: ciphertext in, plaintext out, and the other way round.
///
/// The owner feeds what it read from the wire to `receive`, what it wants to say to `send`, and writes whatever
/// `takeCiphertext` hands out, also after a failure: it may be the alert that tells the peer why.
@safe package struct TLSEngine: ~Copyable {
    /// The most that one record holds.
    private static let recordBytes = 16 * 1024
    /// The least room that is worth reading into.
    private static let smallRead = 256

    private let ssl: OpaquePointer
    private let wire: UnsafeMutablePointer<TLSWire>
    /// The context, which OpenSSL's callbacks ask while this connection lives.
    private let owner: AnyObject
    private let verifies: Bool
    /// A client's first record until it is whole: OpenSSL spends some 36 KiB on one that is not.
    private var hello: TLSHello?
    /// How many more bytes the handshake may take; `nil` leaves it to OpenSSL.
    private var allowance: Int?
    /// What was sent before the handshake was through.
    private var early: [UInt8] = []
    private var hasFailed = false

    /// The handshake is through and the peer is who it should be.
    package private(set) var isEstablished = false
    /// The peer has said that it will send no more; an end without this is a cut.
    package private(set) var isPeerClosed = false

    /// Takes over a connection and gives it a wire to read from and write to.
    /// - Parameter allowance: how many bytes a client's side of the handshake may have; `nil` for a client's own engine.
    @unsafe init(
        adopting ssl: OpaquePointer, of owner: AnyObject, verifies: Bool, allowance: Int? = nil
    ) throws(TLSError) {
        self.allowance = allowance
        hello = allowance == nil ? nil : TLSHello()
        unsafe self.ssl = ssl
        self.owner = owner
        self.verifies = verifies
        unsafe wire = .allocate(capacity: 1)
        unsafe wire.initialize(to: TLSWire())
        // Where this fails, deinit runs: everything is set by now.
        guard let bio = unsafe TLSWire.makeBIO(on: wire) else { throw TLSError(.tlsSetUpFailed, "no memory") }
        unsafe SSL_set_bio(ssl, bio, bio)
    }

    deinit {
        // A session outlives its connection however that ends; OpenSSL would void it when nobody has said goodbye.
        if !hasFailed { unsafe SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN) }
        unsafe SSL_free(ssl)
        unsafe wire.deinitialize(count: 1)
        unsafe wire.deallocate()
    }

    /// Starts the handshake; a client's first flight is then ready to take.
    package mutating func start() throws(TLSError) { try advance() }

    /// Takes bytes from the wire and appends what they decrypt to.
    ///
    /// All of them are used up; OpenSSL keeps an unfinished record.
    /// - Throws: one of the `tls.` codes for a handshake or a record that is not acceptable; the engine is then dead.
    package mutating func receive(
        _ ciphertext: UnsafeBufferPointer<UInt8>, plaintext: inout ByteBuffer
    ) throws(TLSError) {
        guard !hasFailed else { throw TLSError(code: .tlsProtocolError, message: "the connection has failed") }
        if unsafe keep(ciphertext) { return }
        // Not `Optional.take()`: unoptimised, what it leaves of a type without copies is not the `nil` that is looked for.
        var kept: TLSHello?
        swap(&kept, &hello)
        guard var hello = kept else { return try unsafe take(ciphertext, &plaintext) }
        unsafe hello.append(ciphertext)
        try unsafe hello.withBytes { bytes throws(TLSError) in try unsafe take(bytes, &plaintext) }
    }

    /// Takes bytes of a client's first record while it is not whole: nothing is computed, nothing has to be sent.
    /// - Returns: `false` when there is work to do; the bytes are then for `receive`.
    package mutating func keep(_ ciphertext: UnsafeBufferPointer<UInt8>) -> Bool {
        guard unsafe hello?.isReady(with: ciphertext) == false else { return false }
        unsafe hello?.append(ciphertext)
        return true
    }

    private mutating func take(
        _ ciphertext: UnsafeBufferPointer<UInt8>, _ plaintext: inout ByteBuffer
    ) throws(TLSError) {
        unsafe wire.pointee.lend(ciphertext)
        defer { unsafe wire.pointee.takeBack() }
        if !isEstablished {
            try advance()
            if !isEstablished, let left = allowance {
                guard ciphertext.count <= left else {
                    hasFailed = true
                    throw TLSError(
                        code: .tlsHandshakeTooLarge, message: "the peer's part of the handshake is too large")
                }
                allowance = left - ciphertext.count
            }
        }
        guard isEstablished else { return }
        try decrypt(into: &plaintext)
    }

    /// Encrypts bytes; those given before the handshake is through follow it.
    package mutating func send(_ plaintext: UnsafeBufferPointer<UInt8>) throws(TLSError) {
        guard !hasFailed else { throw TLSError(code: .tlsProtocolError, message: "the connection has failed") }
        guard isEstablished else { return unsafe early.append(contentsOf: plaintext) }
        try unsafe encrypt(plaintext)
    }

    /// Says that nothing more will be sent.
    package mutating func close() {
        guard isEstablished, !hasFailed else { return }
        _ = unsafe SSL_shutdown(ssl)
        ERR_clear_error()
    }

    /// Whether there is anything for `takeCiphertext` to hand out.
    package var hasCiphertext: Bool { unsafe !wire.pointee.output.isEmpty }

    /// Moves what is to go on the wire to the end of `buffer`.
    package mutating func takeCiphertext(into buffer: inout ByteBuffer) {
        guard hasCiphertext else { return }
        if buffer.isEmpty {
            unsafe swap(&buffer, &wire.pointee.output)
        } else {
            unsafe buffer.append(wire.pointee.output.bytes)
        }
        unsafe wire.pointee.output.release()
    }

    /// The version both sides speak, such as `TLSv1.3`.
    package var version: String { unsafe String(cString: SSL_get_version(ssl)) }

    /// The cipher both sides use, by OpenSSL's name; empty before there is one.
    package var cipher: String {
        guard let cipher = unsafe SSL_get_current_cipher(ssl), let name = unsafe SSL_CIPHER_get_name(cipher) else {
            return ""
        }
        return unsafe String(cString: name)
    }

    /// What both sides agreed on by ALPN; `nil` where they did not talk of it.
    package var applicationProtocol: TLSApplicationProtocol? {
        var name: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        unsafe SSL_get0_alpn_selected(ssl, &name, &count)
        guard let name = unsafe name, count > 0 else { return nil }
        return unsafe ALPN.protocolNamed(UnsafeBufferPointer(start: name, count: Int(count)))
    }

    /// The host name that the client asked for (SNI), as it wrote it.
    package var serverName: String? {
        unsafe SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name).map { unsafe String(cString: $0) }
    }

    /// The handshake went on from an earlier session: no certificate was shown.
    package var isResumed: Bool { unsafe martlet_tls_is_resumed(ssl) == 1 }
}

// One owner at a time; OpenSSL ties no connection to a thread, and locks what connections share of their context.
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
            ERR_clear_error()
            let ssl = unsafe self.ssl
            let waiting = unsafe max(Int(SSL_pending(ssl)), wire.pointee.inputCount)
            var status: Int32 = 0
            let room = min(max(waiting, TLSEngine.smallRead), TLSEngine.recordBytes)
            _ = unsafe plaintext.fill(room: room) { room in
                status = unsafe SSL_read(ssl, room.baseAddress, Int32(clamping: room.count))
                return Int(max(status, 0))
            }
            if status > 0 {
                if unsafe SSL_pending(ssl) == 0, unsafe wire.pointee.inputCount == 0 { return }
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
            ERR_clear_error()
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
