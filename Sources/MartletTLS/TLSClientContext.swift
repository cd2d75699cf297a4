private import COpenSSL

/// What a client demands of its peers and shows of itself.
package struct TLSClientOptions: Sendable {
    /// The same for both sides.
    package typealias Identity = TLSIdentityFiles

    /// Whose signatures count.
    package enum Trust: Sendable, Equatable {
        /// The system's certificate authorities.
        case system
        /// The authorities in this PEM file alone.
        case file(String)
        /// Nobody is checked; only where the operator has said so.
        case anyone
    }

    package var trust: Trust
    /// Our certificate for peers that ask for one.
    package var identity: Identity?
    /// What ALPN offers, the best first; nothing is offered where there is none.
    package var protocols: [TLSApplicationProtocol]

    package init(trust: Trust, identity: Identity? = nil, protocols: [TLSApplicationProtocol] = []) {
        self.trust = trust
        self.identity = identity
        self.protocols = protocols
    }
}

/// The settings that all TLS connections to one kind of peer share: TLS 1.2 or later, trust and identity.
///
/// It remembers the last session with each server name, so that the next connection is cheaper.
// nonisolated(unsafe): OpenSSL counts references to the context atomically and locks what connections share of it;
// it is not changed after init.
@safe package final class TLSClientContext: Sendable {
    private nonisolated(unsafe) let context: OpaquePointer
    private let verifies: Bool
    let sessions = ClientSessions()
    /// What is known of our own certificate.
    package let certificate: TLSCertificateFacts?

    /// Reads the files the options name.
    /// - Throws: one of the `tls.` codes of settings, with the place that is at fault.
    package init(_ options: TLSClientOptions) throws(TLSError) {
        let identity: TLSIdentity? =
            if let files = options.identity { try TLSIdentity(files, number: 0) } else { nil }
        ERR_clear_error()
        guard let context = unsafe SSL_CTX_new(TLS_client_method()) else {
            throw TLSError(.tlsSetUpFailed, "no TLS context")
        }
        unsafe self.context = context
        verifies = options.trust != .anyone
        certificate = identity?.facts
        guard unsafe martlet_tls_set_min_version(context, TLS1_2_VERSION) == 1 else {
            throw TLSError(.tlsSetUpFailed, "TLS 1.2 is not there")
        }
        unsafe martlet_tls_set_lean_mode(context)
        unsafe SSL_CTX_set_verify(context, verifies ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, nil)
        try load(options.trust)
        if let identity, let file = options.identity?.certificateFile {
            try unsafe identity.use(in: context, file, number: 0)
        }
        let offer = ALPN.list(options.protocols)
        // This one function of OpenSSL answers 0 for success.
        guard unsafe offer.isEmpty || SSL_CTX_set_alpn_protos(context, offer, UInt32(offer.count)) == 0 else {
            throw TLSError(.tlsSetUpFailed, "no protocols")
        }
        unsafe sessions.remember(those: context)
    }

    deinit { unsafe SSL_CTX_free(context) }

    /// A fresh connection's engine, which checks the peer against `serverName`: a host name or an address literal.
    ///
    /// It goes on from the last session with that name, where there was one and the server still knows it.
    package func makeEngine(serverName: String) throws(TLSError) -> TLSEngine {
        guard !serverName.isEmpty, !serverName.utf8.contains(0) else {
            throw TLSError(code: .tlsServerNameInvalid, message: "no name to check the peer against")
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
            else { throw TLSError(.tlsServerNameInvalid, "'\(serverName)' cannot be a server's name") }
        }
        unsafe sessions.offer(on: ssl)
        return engine
    }

    private func load(_ trust: TLSClientOptions.Trust) throws(TLSError) {
        switch trust {
        case .anyone: break
        case .system:
            guard unsafe SSL_CTX_set_default_verify_paths(context) == 1 else {
                throw TLSError(.tlsTrustUnreadable, "the system's certificate authorities").at(.authorities)
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
