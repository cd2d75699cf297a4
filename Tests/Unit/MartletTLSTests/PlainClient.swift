import COpenSSL
import MartletCore
import MartletTesting

@testable import MartletTLS

/// OpenSSL's client in memory, for behavior that our own client does not have.
@safe final class PlainClient {
    private let context: OpaquePointer
    private let ssl: OpaquePointer

    /// The options of the client.
    struct Options {
        var name: String?
        var versions = TLS1_2_VERSION...TLS1_3_VERSION
        /// The encoded ALPN list.
        var protocols: [UInt8] = []
        var ciphers: String?
        var suites: String?
        var signatures: String?
        var identity: TLSIdentityFiles?
        /// A session of an earlier client.
        var session: PlainClient?
    }

    init(_ options: Options) throws {
        guard let context = unsafe SSL_CTX_new(TLS_client_method()) else { throw TestFailure("no context") }
        unsafe self.context = context
        unsafe SSL_CTX_set_security_level(context, 0)
        let versions = options.versions
        unsafe SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(versions.lowerBound), nil)
        unsafe SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(versions.upperBound), nil)
        if let ciphers = options.ciphers { unsafe SSL_CTX_set_cipher_list(context, ciphers) }
        if let suites = options.suites { unsafe SSL_CTX_set_ciphersuites(context, suites) }
        if let identity = options.identity {
            unsafe SSL_CTX_use_certificate_chain_file(context, identity.certificateFile)
            unsafe SSL_CTX_use_PrivateKey_file(context, identity.keyFile, SSL_FILETYPE_PEM)
        }
        guard let ssl = unsafe SSL_new(context) else { throw TestFailure("no client") }
        unsafe self.ssl = ssl
        if let signatures = options.signatures {
            var signatures = Array(signatures.utf8CString)
            unsafe SSL_ctrl(ssl, SSL_CTRL_SET_SIGALGS_LIST, 0, &signatures)
        }
        if let name = options.name { unsafe martlet_tls_set_server_name(ssl, name) }
        if !options.protocols.isEmpty {
            unsafe SSL_set_alpn_protos(ssl, options.protocols, UInt32(options.protocols.count))
        }
        if let session = options.session { unsafe SSL_set_session(ssl, SSL_get_session(session.ssl)) }
        unsafe SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()))
        unsafe SSL_set_connect_state(ssl)
    }

    deinit {
        unsafe SSL_set_shutdown(ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN)
        unsafe SSL_free(ssl)
        unsafe SSL_CTX_free(context)
    }

    var isEstablished: Bool { unsafe SSL_is_init_finished(ssl) == 1 }
    var isResumed: Bool { unsafe SSL_session_reused(ssl) == 1 }
    var version: String { unsafe String(cString: SSL_get_version(ssl)) }
    var cipher: String { unsafe String(cString: SSL_CIPHER_get_name(SSL_get_current_cipher(ssl))) }

    /// How many bytes the server takes before the handshake of the next connection.
    var earlyBytes: UInt32 { unsafe SSL_SESSION_get_max_early_data(SSL_get_session(ssl)) }
    /// Whether records are compressed.
    var isCompressed: Bool { unsafe SSL_get_current_compression(ssl) != nil }

    /// Sends bytes before the handshake, whatever the server of the session has permitted.
    /// - Returns: whether they were sent.
    func sendEarly(_ bytes: [UInt8]) -> Bool {
        guard let session = unsafe SSL_get_session(ssl), unsafe SSL_SESSION_set_max_early_data(session, 1024) == 1
        else { return false }
        var count = 0
        return unsafe SSL_write_early_data(ssl, bytes, bytes.count, &count) == 1 && count == bytes.count
    }

    /// Whether the server took them.
    var wasEarlyAccepted: Bool { unsafe SSL_get_early_data_status(ssl) == SSL_EARLY_DATA_ACCEPTED }

    /// The common name of the server's certificate.
    var peer: String? {
        guard let certificate = unsafe SSL_get0_peer_certificate(ssl) else { return nil }
        var text = [CChar](repeating: 0, count: 64)
        let name = unsafe X509_get_subject_name(certificate)
        let count = unsafe X509_NAME_get_text_by_NID(name, NID_commonName, &text, Int32(text.count))
        return count < 0 ? nil : String(decoding: text.prefix(Int(count)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// The key type of the server's certificate.
    var peerKey: Int32 {
        guard let certificate = unsafe SSL_get0_peer_certificate(ssl) else { return 0 }
        return unsafe EVP_PKEY_get_base_id(X509_get0_pubkey(certificate))
    }

    /// Continues the handshake, or reads; the ciphertext to send is read with `output`.
    func receive(_ ciphertext: [UInt8]) {
        if !ciphertext.isEmpty { _ = unsafe BIO_write(SSL_get_rbio(ssl), ciphertext, Int32(ciphertext.count)) }
        var byte: UInt8 = 0
        _ = unsafe SSL_read(ssl, &byte, 1)
        ERR_clear_error()
    }

    /// Requests a renegotiation.
    func renegotiate() {
        _ = unsafe SSL_renegotiate(ssl)
        _ = unsafe SSL_do_handshake(ssl)
        ERR_clear_error()
    }

    func output() -> [UInt8] {
        var all: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = unsafe BIO_read(SSL_get_wbio(ssl), &chunk, Int32(chunk.count))
            guard count > 0 else { return all }
            all += chunk[..<Int(count)]
        }
    }

    /// Passes bytes in both directions until neither side has output.
    /// - Returns: the server's error.
    func talk(to server: inout EnginePeer) -> TLSError? {
        var failure: TLSError?
        receive([])
        while true {
            let sent = output()
            if !sent.isEmpty, failure == nil {
                do throws(TLSError) { try server.receive(sent, pieces: .max) } catch { failure = error }
            }
            let reply = server.output()
            if !reply.isEmpty { receive(reply) }
            if sent.isEmpty, reply.isEmpty { return failure }
        }
    }
}
