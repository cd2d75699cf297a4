private import COpenSSL

/// What a client demands of its peers and shows of itself.
package struct TLSClientOptions: Sendable {
    /// Whose signatures count.
    package enum Trust: Sendable, Equatable {
        /// The system's certificate authorities.
        case system
        /// The authorities in this PEM file alone.
        case file(String)
        /// Nobody is checked; only where the operator has said so.
        case anyone
    }

    /// Our certificate for peers that ask for one, as PEM files.
    package struct Identity: Sendable, Equatable {
        package var certificateFile: String
        package var keyFile: String

        package init(certificateFile: String, keyFile: String) {
            self.certificateFile = certificateFile
            self.keyFile = keyFile
        }
    }

    package var trust: Trust
    package var identity: Identity?

    package init(trust: Trust, identity: Identity? = nil) {
        self.trust = trust
        self.identity = identity
    }
}

/// The settings that all TLS connections to one kind of peer share: TLS 1.2 or later, trust and identity.
// nonisolated(unsafe): OpenSSL counts references to the context atomically and locks what connections share of it;
// it is not changed after init.
@safe package final class TLSClientContext: Sendable {
    private nonisolated(unsafe) let context: OpaquePointer
    private let verifies: Bool

    /// Reads the files the options name.
    package init(_ options: TLSClientOptions) throws(TLSError) {
        ERR_clear_error()
        guard let context = unsafe SSL_CTX_new(TLS_client_method()) else {
            throw TLSError(.tlsSetUpFailed, "no TLS context")
        }
        unsafe self.context = context
        verifies = options.trust != .anyone
        guard unsafe martlet_tls_set_min_version(context, TLS1_2_VERSION) == 1 else {
            throw TLSError(.tlsSetUpFailed, "TLS 1.2 is not there")
        }
        unsafe martlet_tls_set_lean_mode(context)
        unsafe SSL_CTX_set_verify(context, verifies ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nil)
        try load(options.trust)
        if let identity = options.identity { try load(identity) }
    }

    deinit { unsafe SSL_CTX_free(context) }

    /// A fresh connection's engine, which checks the peer against `serverName`: a host name or an address literal.
    package func makeEngine(serverName: String) throws(TLSError) -> TLSEngine {
        guard !serverName.isEmpty, !serverName.utf8.contains(0) else {
            throw TLSError(code: .tlsServerNameInvalid, message: "no name to check the peer against")
        }
        ERR_clear_error()
        guard let ssl = unsafe SSL_new(context) else { throw TLSError(.tlsSetUpFailed, "no TLS connection") }
        let engine = try unsafe TLSEngine(adopting: ssl, verifies: verifies)
        unsafe SSL_set_connect_state(ssl)
        let parameters = unsafe SSL_get0_param(ssl)
        if unsafe X509_VERIFY_PARAM_set1_ip_asc(parameters, serverName) == 1 { return engine }
        ERR_clear_error()
        unsafe SSL_set_hostflags(ssl, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
        guard unsafe SSL_set1_host(ssl, serverName) == 1,
            unsafe martlet_tls_set_server_name(ssl, serverName) == 1
        else { throw TLSError(.tlsServerNameInvalid, "'\(serverName)' cannot be a server's name") }
        return engine
    }

    private func load(_ trust: TLSClientOptions.Trust) throws(TLSError) {
        switch trust {
        case .anyone: break
        case .system:
            guard unsafe SSL_CTX_set_default_verify_paths(context) == 1 else {
                throw TLSError(.tlsTrustUnreadable, "the system's certificate authorities")
            }
        case .file(let path):
            guard unsafe SSL_CTX_load_verify_file(context, path) == 1 else {
                throw TLSError(.tlsTrustUnreadable, path)
            }
        }
    }

    private func load(_ identity: TLSClientOptions.Identity) throws(TLSError) {
        guard unsafe SSL_CTX_use_certificate_chain_file(context, identity.certificateFile) == 1 else {
            throw TLSError(.tlsCertificateUnreadable, identity.certificateFile)
        }
        guard unsafe SSL_CTX_use_PrivateKey_file(context, identity.keyFile, SSL_FILETYPE_PEM) == 1 else {
            // OpenSSL compares the key with the certificate while it loads it.
            let isMismatch = ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH
            throw TLSError(isMismatch ? .tlsKeyMismatch : .tlsKeyUnreadable, identity.keyFile)
        }
        guard unsafe SSL_CTX_check_private_key(context) == 1 else {
            throw TLSError(.tlsKeyMismatch, identity.keyFile)
        }
    }
}
