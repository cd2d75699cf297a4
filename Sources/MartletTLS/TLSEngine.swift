private import COpenSSL
package import MartletCore

/// One TLS connection without a socket: ciphertext in, plaintext out, and the other way round.
///
/// The owner feeds what it read from the wire to `receive`, what it wants to say to `send`, and writes whatever
/// `takeCiphertext` hands out, also after a failure: it may be the alert that tells the peer why.
@safe package struct TLSEngine: ~Copyable {
    private static let recordBytes = 16 * 1024

    private let ssl: OpaquePointer
    private let verifies: Bool
    /// What was sent before the handshake was through.
    private var early: [UInt8] = []
    private var hasFailed = false

    /// The handshake is through and the peer is who it should be.
    package private(set) var isEstablished = false
    /// The peer has said that it will send no more; an end without this is a cut.
    package private(set) var isPeerClosed = false

    /// Takes over a connection and gives it memory to read from and write to.
    @unsafe init(adopting ssl: OpaquePointer, verifies: Bool) throws(TLSError) {
        unsafe self.ssl = ssl
        self.verifies = verifies
        let input = unsafe BIO_new(BIO_s_mem())
        let output = unsafe BIO_new(BIO_s_mem())
        guard let input = unsafe input, let output = unsafe output else {
            unsafe BIO_free(input)
            unsafe BIO_free(output)
            throw TLSError(.tlsSetUpFailed, "no memory")
        }
        unsafe SSL_set_bio(ssl, input, output)
    }

    deinit { unsafe SSL_free(ssl) }

    /// Starts the handshake; the first flight is then ready to take.
    package mutating func start() throws(TLSError) { try advance() }

    /// Takes bytes from the wire and appends what they decrypt to.
    /// - Throws: one of the `tls.` codes for a handshake or a record that is not acceptable; the engine is then dead.
    package mutating func receive(
        _ ciphertext: UnsafeBufferPointer<UInt8>, plaintext: inout ByteBuffer
    ) throws(TLSError) {
        guard !hasFailed else { throw TLSError(code: .tlsProtocolError, message: "the connection has failed") }
        if let base = ciphertext.baseAddress, ciphertext.count > 0 {
            let input = unsafe SSL_get_rbio(ssl)
            let count = Int32(clamping: ciphertext.count)
            guard unsafe BIO_write(input, base, count) == count else {
                throw fail(.tlsSetUpFailed, "no memory")
            }
        }
        if !isEstablished { try advance() }
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

    /// Moves what is to go on the wire to the end of `wire`.
    package mutating func takeCiphertext(into wire: inout ByteBuffer) {
        let output = unsafe SSL_get_wbio(ssl)
        while true {
            let waiting = unsafe martlet_bio_pending(output)
            guard waiting > 0 else { return }
            let taken = unsafe wire.fill(room: waiting) { room in
                unsafe Int(BIO_read(output, room.baseAddress, Int32(clamping: waiting)))
            }
            guard taken > 0 else { return }
        }
    }

    /// The version both sides speak, such as `TLSv1.3`.
    package var version: String { unsafe String(cString: SSL_get_version(ssl)) }
}

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
        let result = Int32(clamping: unsafe SSL_get_verify_result(ssl))
        guard verifies, result != X509_V_OK else { return fail(.tlsHandshakeFailed, "TLS handshake") }
        let reason = unsafe String(cString: X509_verify_cert_error_string(Int(result)))
        ERR_clear_error()
        hasFailed = true
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
            var status: Int32 = 0
            _ = unsafe plaintext.fill(room: TLSEngine.recordBytes) { room in
                status = unsafe SSL_read(ssl, room.baseAddress, Int32(clamping: room.count))
                return Int(max(status, 0))
            }
            if status > 0 { continue }
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
