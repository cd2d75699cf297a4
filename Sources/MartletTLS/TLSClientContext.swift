private import COpenSSL

/// The TLS settings of a client.
package struct TLSClientOptions: Sendable {
    /// The same type as for servers.
    package typealias Identity = TLSIdentityFiles

    /// The trusted authorities.
    package enum Trust: Sendable, Equatable {
        /// The system's certificate authorities.
        case system
        /// Only the authorities in this PEM file.
        case file(String)
        /// No verification: any certificate is accepted. Only if the operator has configured it.
        case anyCertificate
    }

    package var trust: Trust
    /// Our certificate for peers that request one.
    package var identity: Identity?
    /// The protocols offered by ALPN, in order of preference; empty for no ALPN.
    package var protocols: [TLSApplicationProtocol]

    package init(trust: Trust, identity: Identity? = nil, protocols: [TLSApplicationProtocol] = []) {
        self.trust = trust
        self.identity = identity
        self.protocols = protocols
    }
}

/// The settings that TLS connections to one kind of peer share: TLS 1.2 or later, trust and identity.
///
/// It caches the last session with each server name for resumption.
// nonisolated(unsafe): OpenSSL counts references to the context atomically and locks what connections share of it;
// it is not changed after init.
@safe package final class TLSClientContext: Sendable {
    private nonisolated(unsafe) let context: OpaquePointer
    private let verifies: Bool
    let sessions = ClientSessions()
    /// Our own certificate.
    package let certificate: TLSCertificateInfo?

    /// Loads the files of the options.
    /// - Throws: one of the `tls.` codes of settings, with the setting that caused the error.
    package init(_ options: TLSClientOptions) throws(TLSError) {
        let identity: TLSIdentity? =
            if let files = options.identity { try TLSIdentity(files, number: 0) } else { nil }
        ERR_clear_error()
        guard let context = unsafe SSL_CTX_new(TLS_client_method()) else {
            throw TLSError(.tlsSetUpFailed, "no TLS context")
        }
        unsafe self.context = context
        verifies = options.trust != .anyCertificate
        certificate = identity?.info
        guard unsafe martlet_tls_set_min_version(context, TLS1_2_VERSION) == 1 else {
            throw TLSError(.tlsSetUpFailed, "TLS 1.2 is not available")
        }
        unsafe martlet_tls_set_lean_mode(context)
        unsafe SSL_CTX_set_verify(context, verifies ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nil)
        try load(options.trust)
        if let identity, let file = options.identity?.certificateFile {
            try unsafe identity.use(in: context, file, number: 0)
        }
        let offer = ALPN.list(options.protocols)
        // Unlike other functions of OpenSSL, this one returns 0 for success.
        guard unsafe offer.isEmpty || SSL_CTX_set_alpn_protos(context, offer, UInt32(offer.count)) == 0 else {
            throw TLSError(.tlsSetUpFailed, "no ALPN protocols")
        }
        unsafe sessions.attach(to: context)
    }

    deinit { unsafe SSL_CTX_free(context) }

    /// Creates the engine of a new connection, which verifies the peer against `serverName`: a host name or an address.
    ///
    /// It offers to resume the last session with that name.
    package func makeEngine(serverName: String) throws(TLSError) -> TLSEngine {
        guard !serverName.isEmpty, !serverName.utf8.contains(0) else {
            throw TLSError(code: .tlsServerNameInvalid, message: "no server name to verify")
        }
        ERR_clear_error()
        guard let ssl = unsafe SSL_new(context) else { throw TLSError(.tlsSetUpFailed, "no TLS connection") }
        let engine = try unsafe TLSEngine(adopting: ssl, of: self, verifies: verifies)
        unsafe SSL_set_connect_state(ssl)
        let parameters = unsafe SSL_get0_param(ssl)
        if unsafe X509_VERIFY_PARAM_set1_ip_asc(parameters, serverName) != 1 {
            ERR_clear_error()
            unsafe SSL_set_hostflags(ssl, UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
            guard unsafe SSL_set1_host(ssl, serverName) == 1,
                unsafe martlet_tls_set_server_name(ssl, serverName) == 1
            else { throw TLSError(.tlsServerNameInvalid, "'\(serverName)' is not a valid server name") }
        }
        unsafe sessions.offer(on: ssl)
        return engine
    }

    private func load(_ trust: TLSClientOptions.Trust) throws(TLSError) {
        switch trust {
        case .anyCertificate: break
        case .system:
            guard unsafe SSL_CTX_set_default_verify_paths(context) == 1 else {
                throw TLSError(.tlsTrustUnreadable, "system certificate authorities").at(.authorities)
            }
        case .file(let path):
            do {
                _ = try unsafe TrustFile(path: path).load(into: context, announces: false)
            } catch {
                throw error.at(.authorities)
            }
        }
    }
}
