private import COpenSSL
internal import MartletCore

/// What all TLS connections to one listener share: certificates, versions, ciphers, and whom of its clients it believes.
///
/// Immutable; a reload makes another one. Connections keep the one that they began with.
@safe package final class TLSServerContext: Sendable {
    /// How many certificates a client's chain may have, and how many bytes.
    private static let maximumDepth: Int32 = 8
    private static let maximumChainBytes = 32 * 1024
    /// What else a client has to say until the handshake is through: two hellos at most, with a ticket in each.
    private static let maximumHandshakeBytes = 32 * 1024

    // nonisolated(unsafe): OpenSSL counts references to the context atomically and locks what connections share of it;
    // it is not changed after init.
    private nonisolated(unsafe) let context: OpaquePointer
    let identities: [TLSIdentity]
    let choice: CertificateChoice
    let protocols: [TLSApplicationProtocol]
    let tickets: TLSTicketKeys
    let verifies: Bool
    /// What is known of the certificates, in the order of the options.
    package let certificates: [TLSCertificateFacts]

    /// Reads the files the options name.
    /// - Throws: one of the `tls.` codes of settings, with the place that is at fault.
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
        choice = CertificateChoice(identities.map { .init(hosts: $0.hosts, kind: $0.kind) })
        protocols = options.offersHTTP2 ? [.http2, .http1] : [.http1]
        verifies = options.clientAuthentication != .none
        certificates = identities.map(\.facts)
        try setUp(options)
    }

    deinit { unsafe SSL_CTX_free(context) }

    /// A fresh connection's engine; its handshake goes on with what the client sends.
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
        else { throw TLSError(.tlsSetUpFailed, "TLS 1.2 is not there") }
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
        let trust = try demandCertificates(options)
        try limitResumption(to: trust, options)
        unsafe answerQuestions(of: context)
    }

    private func useCertificates(_ options: TLSServerOptions) throws(TLSError) {
        // Those that only some names get are tried elsewhere: what cannot be used is told now.
        guard let trial = unsafe SSL_CTX_new(TLS_server_method()) else {
            throw TLSError(.tlsSetUpFailed, "no TLS context")
        }
        defer { unsafe SSL_CTX_free(trial) }
        for (number, identity) in identities.enumerated() {
            try unsafe identity.use(in: trial, options.identities[number].certificateFile, number: number)
        }
        for number in choice.fallback {
            try unsafe identities[number].use(in: context, options.identities[number].certificateFile, number: number)
        }
    }

    /// - Returns: what tells the believed authorities from others.
    private func demandCertificates(_ options: TLSServerOptions) throws(TLSError) -> [UInt8] {
        guard options.clientAuthentication != .none else { return [] }
        guard let path = options.clientAuthorityFile else {
            throw TLSError(
                code: .tlsTrustEmpty, message: "clients' certificates need authorities", place: .clientAuthorities)
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

    /// A session goes on only where its client would be believed as it was where it began, and for the same names.
    ///
    /// A new certificate for the same names keeps the sessions of the old one.
    private func limitResumption(to trust: [UInt8], _ options: TLSServerOptions) throws(TLSError) {
        var text = "\(options.clientAuthentication)"
        for name in Set(certificates.flatMap(\.names)).sorted() { text += "\n" + name }
        let bytes = Array(text.utf8) + [0] + trust
        var print = [UInt8](repeating: 0, count: 32)
        guard unsafe EVP_Digest(bytes, bytes.count, &print, nil, EVP_sha256(), nil) == 1,
            unsafe SSL_CTX_set_session_id_context(context, print, UInt32(print.count)) == 1
        else { throw TLSError(.tlsSetUpFailed, "no session context") }
    }
}
