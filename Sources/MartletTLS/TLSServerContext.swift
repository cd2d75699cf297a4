private import COpenSSL
internal import MartletCore

/// The settings that TLS connections to one listener share: certificates, versions, ciphers and client authentication.
///
/// Immutable: a reload creates a new one, and connections retain the one they began with.
@safe package final class TLSServerContext: Sendable {
    /// The maximum certificates of a client's chain, and its maximum size in bytes.
    private static let maximumDepth: Int32 = 8
    private static let maximumChainBytes = 32 * 1024
    /// The maximum bytes of a client's other handshake messages: at most two hellos, with a ticket each.
    private static let maximumHandshakeBytes = 32 * 1024

    // nonisolated(unsafe): OpenSSL counts references to the context atomically and locks what connections share of it;
    // it is not changed after init.
    private nonisolated(unsafe) let context: OpaquePointer
    let identities: [TLSIdentity]
    let selector: CertificateSelector
    let protocols: [TLSApplicationProtocol]
    let tickets: TLSTicketKeys
    let verifies: Bool
    /// The certificates, in the order of the options.
    package let certificates: [TLSCertificateInfo]

    /// Loads the files of the options.
    /// - Throws: one of the `tls.` codes of settings, with the setting that caused the error.
    package init(_ options: TLSServerOptions, tickets: TLSTicketKeys) throws(TLSError) {
        var identities: [TLSIdentity] = []
        for (number, files) in options.identities.enumerated() {
            identities.append(try TLSIdentity(files, number: number))
        }
        ERR_clear_error()
        guard !identities.isEmpty, let context = unsafe SSL_CTX_new(TLS_server_method()) else {
            throw TLSError(.tlsSetUpFailed, "no TLS context")
        }
        unsafe self.context = context
        self.identities = identities
        self.tickets = tickets
        selector = CertificateSelector(identities.map { .init(hosts: $0.hosts, kind: $0.kind) })
        protocols = options.offersHTTP2 ? [.http2, .http1] : [.http1]
        verifies = options.clientAuthentication != .none
        certificates = identities.map(\.info)
        try setUp(options)
    }

    deinit { unsafe SSL_CTX_free(context) }

    /// Creates the engine of a new connection; its handshake begins with the client's first bytes.
    package func makeEngine() throws(TLSError) -> TLSEngine {
        ERR_clear_error()
        guard let ssl = unsafe SSL_new(context) else { throw TLSError(.tlsSetUpFailed, "no TLS connection") }
        unsafe SSL_set_accept_state(ssl)
        let allowance = TLSServerContext.maximumHandshakeBytes + (verifies ? TLSServerContext.maximumChainBytes : 0)
        return try unsafe TLSEngine(adopting: ssl, of: self, verifies: verifies, allowance: allowance)
    }

    private func setUp(_ options: TLSServerOptions) throws(TLSError) {
        let minimum = options.minimumVersion == .tls13 ? TLS1_3_VERSION : TLS1_2_VERSION
        guard unsafe martlet_tls_set_min_version(context, minimum) == 1,
            unsafe martlet_tls_set_groups(context, CipherNames.groups) == 1
        else { throw TLSError(.tlsSetUpFailed, "TLS 1.2 is not available") }
        unsafe martlet_tls_set_lean_mode(context)
        unsafe martlet_tls_set_server_preference(context)
        unsafe martlet_tls_keep_no_sessions(context)
        unsafe SSL_CTX_set_max_early_data(context, 0)
        unsafe SSL_CTX_set_timeout(context, Int(TLSTicketKeys.ticketLife.wholeSeconds))
        do { try unsafe CipherNames.apply(options.ciphers, to: context) } catch { throw error.at(.ciphers) }
        do { try unsafe CipherNames.applySuites(options.cipherSuites, to: context) } catch {
            throw error.at(.cipherSuites)
        }
        try useCertificates(options)
        let trust = try requestClientCertificates(options)
        try limitResumption(to: trust, options)
        unsafe installCallbacks(on: context)
    }

    private func useCertificates(_ options: TLSServerOptions) throws(TLSError) {
        // Try all certificates on another context, so that those for some names only are checked now as well.
        guard let trial = unsafe SSL_CTX_new(TLS_server_method()) else {
            throw TLSError(.tlsSetUpFailed, "no TLS context")
        }
        defer { unsafe SSL_CTX_free(trial) }
        for (number, identity) in identities.enumerated() {
            try unsafe identity.use(in: trial, options.identities[number].certificateFile, number: number)
        }
        for number in selector.fallback {
            try unsafe identities[number].use(in: context, options.identities[number].certificateFile, number: number)
        }
    }

    /// - Returns: the digests of the trusted authorities.
    private func requestClientCertificates(_ options: TLSServerOptions) throws(TLSError) -> [UInt8] {
        guard options.clientAuthentication != .none else { return [] }
        guard let path = options.clientAuthorityFile else {
            throw TLSError(
                code: .tlsTrustEmpty, message: "client certificates require a CA file", setting: .clientAuthorities)
        }
        let mode =
            SSL_VERIFY_PEER | (options.clientAuthentication == .required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0)
        unsafe SSL_CTX_set_verify(context, mode, nil)
        unsafe SSL_CTX_set_verify_depth(context, TLSServerContext.maximumDepth)
        unsafe martlet_tls_set_maximum_chain(context, TLSServerContext.maximumChainBytes)
        do {
            return try unsafe TrustFile(path: path).load(into: context, announces: true)
        } catch {
            throw error.at(.clientAuthorities)
        }
    }

    /// Allows resumption only with the same client authentication and the same names as in the original session.
    ///
    /// Sessions survive a new certificate for the same names.
    private func limitResumption(to trust: [UInt8], _ options: TLSServerOptions) throws(TLSError) {
        var text = "\(options.clientAuthentication)"
        for name in Set(certificates.flatMap(\.names)).sorted() { text += "\n" + name }
        let bytes = Array(text.utf8) + [0] + trust
        var digest = [UInt8](repeating: 0, count: 32)
        guard unsafe EVP_Digest(bytes, bytes.count, &digest, nil, EVP_sha256(), nil) == 1,
            unsafe SSL_CTX_set_session_id_context(context, digest, UInt32(digest.count)) == 1
        else { throw TLSError(.tlsSetUpFailed, "no session context") }
    }
}
