import COpenSSL
import MartletCore
import MartletTesting

/// A minimal OpenSSL server in memory.
@safe final class ServerSide {
    private let context: OpaquePointer
    private let ssl: OpaquePointer
    /// The decrypted bytes from the client.
    private(set) var received: [UInt8] = []

    init(
        _ certificate: CertificateAuthority.Issued, clientAuthority: String? = nil,
        maximumVersion: Int32 = TLS1_3_VERSION
    ) throws {
        guard let context = unsafe SSL_CTX_new(TLS_server_method()) else { throw TestFailure("no context") }
        unsafe self.context = context
        let isLoaded =
            unsafe SSL_CTX_use_certificate_chain_file(context, certificate.certificateFile) == 1
            && SSL_CTX_use_PrivateKey_file(context, certificate.keyFile, SSL_FILETYPE_PEM) == 1
            && SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(maximumVersion), nil) == 1
        if let clientAuthority {
            unsafe SSL_CTX_load_verify_file(context, clientAuthority)
            unsafe SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
        }
        if maximumVersion < TLS1_2_VERSION { unsafe SSL_CTX_set_security_level(context, 0) }
        guard isLoaded, let ssl = unsafe SSL_new(context) else { throw TestFailure("no server") }
        unsafe self.ssl = ssl
        unsafe SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()))
        unsafe SSL_set_accept_state(ssl)
    }

    deinit {
        unsafe SSL_free(ssl)
        unsafe SSL_CTX_free(context)
    }

    var isEstablished: Bool { unsafe SSL_is_init_finished(ssl) == 1 }
    var serverName: String? {
        unsafe SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name).map { unsafe String(cString: $0) }
    }
    var clientHasCertificate: Bool { unsafe SSL_get0_peer_certificate(ssl) != nil }

    /// Receives ciphertext; the ciphertext to send is read with `output`.
    func receive(_ ciphertext: [UInt8]) {
        if !ciphertext.isEmpty { _ = unsafe BIO_write(SSL_get_rbio(ssl), ciphertext, Int32(ciphertext.count)) }
        var chunk = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = unsafe SSL_read(ssl, &chunk, Int32(chunk.count))
            guard count > 0 else { break }
            received += chunk[..<Int(count)]
        }
        ERR_clear_error()
    }

    func send(_ plaintext: [UInt8]) { _ = unsafe SSL_write(ssl, plaintext, Int32(plaintext.count)) }

    func sendCloseNotify() { _ = unsafe SSL_shutdown(ssl) }

    func output() -> [UInt8] {
        var all: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = unsafe BIO_read(SSL_get_wbio(ssl), &chunk, Int32(chunk.count))
            guard count > 0 else { return all }
            all += chunk[..<Int(count)]
        }
    }
}
