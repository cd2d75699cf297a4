internal import MartletConfig
internal import MartletCore
internal import MartletTLS

/// The TLS contexts of a configuration: certificates, keys and certificate authorities, read from their files and
/// verified.
struct TLSMaterial: Sendable {
    /// A certificate that a listener or an upstream connection presents.
    struct PresentedCertificate: Sendable {
        /// `listener` or `upstream`.
        let side: String
        /// The listener's address, or the upstream's name.
        let name: String
        /// The position of the configuration key that names the file.
        let location: SourceLocation
        let facts: TLSCertificateInfo
    }

    /// The context of each public listener, in their order; `nil` is clear text.
    private(set) var listeners: [TLSServerContext?] = []
    /// The same of the admin listener.
    private(set) var admin: TLSServerContext?
    /// The context of each upstream, in their order; `nil` if no endpoint is `https`.
    private(set) var upstreams: [TLSClientContext?] = []
    private(set) var certificates: [PresentedCertificate] = []

    /// Reads every file and reports errors at the key that names it.
    /// - Parameter tickets: the process's ticket keys; with the same keys as before, TLS sessions can be resumed.
    init(_ configuration: GatewayConfiguration, tickets: TLSTicketKeys, into diagnostics: inout Diagnostics) {
        for listener in configuration.server.listeners {
            listeners.append(context(of: listener, tickets, &diagnostics))
        }
        if let listener = configuration.admin?.listener { admin = context(of: listener, tickets, &diagnostics) }
        for upstream in configuration.upstreams { add(upstream, &diagnostics) }
        var seen: Set<[String]> = []
        certificates.removeAll { !seen.insert([$0.side, $0.name, $0.file]).inserted }
    }

    /// The same with so many clear text listeners, which replace those of the file.
    func withCleartextListeners(_ count: Int) -> TLSMaterial {
        var changed = self
        changed.listeners = Array(repeating: nil, count: count)
        let admin = admin?.certificates.map(\.file) ?? []
        changed.certificates.removeAll { $0.side == "listener" && !admin.contains($0.file) }
        return changed
    }

    /// - Returns: `nil` in clear text, or after an error.
    private mutating func context(
        of listener: ListenerConfiguration, _ tickets: TLSTicketKeys, _ diagnostics: inout Diagnostics
    ) -> TLSServerContext? {
        guard let tls = listener.tls, !tls.certificates.isEmpty else { return nil }
        for files in tls.certificates { diagnostics.warnOfExposure(files.key.value, at: files.key.location) }
        do {
            let context = try TLSServerContext(
                TLSServerOptions(tls, offersHTTP2: listener.offersHTTP2), tickets: tickets)
            for (files, facts) in zip(tls.certificates, context.certificates) {
                certificates.append(
                    PresentedCertificate(
                        side: "listener", name: listener.address.value.configurationText,
                        location: files.certificate.location, facts: facts))
            }
            return context
        } catch {
            let location = tls.location(of: error.setting) ?? listener.address.location
            diagnostics.error(error.code, at: location, error.message)
            Self.reportUnreadable(tls.certificates, tls.clientAuthorityFile, but: location, &diagnostics)
            return nil
        }
    }

    private mutating func add(_ upstream: UpstreamConfiguration, _ diagnostics: inout Diagnostics) {
        let isEncrypted = upstream.endpoints.contains { if case .https = $0.value { true } else { false } }
        guard isEncrypted else { return upstreams.append(nil) }
        let tls = upstream.transport.tls
        if let key = tls.certificate?.key { diagnostics.warnOfExposure(key.value, at: key.location) }
        do {
            let context = try TLSClientContext(TLSClientOptions(upstream.transport))
            upstreams.append(context)
            if let files = tls.certificate, let facts = context.certificate {
                certificates.append(
                    PresentedCertificate(
                        side: "upstream", name: upstream.name.value, location: files.certificate.location,
                        facts: facts))
            }
        } catch {
            upstreams.append(nil)
            let location = tls.location(of: error.setting) ?? upstream.name.location
            diagnostics.error(error.code, at: location, error.message)
            Self.reportUnreadable([tls.certificate].compactMap(\.self), tls.authorityFile, but: location, &diagnostics)
        }
    }

    /// Reports every other unreadable file; creating a context stops at the first.
    private static func reportUnreadable(
        _ certificates: [CertificateFiles], _ authorities: Located<String>?, but known: SourceLocation,
        _ diagnostics: inout Diagnostics
    ) {
        var files: [(ErrorCode, Located<String>)] = []
        for pair in certificates {
            files += [(.tlsCertificateUnreadable, pair.certificate), (.tlsKeyUnreadable, pair.key)]
        }
        if let authorities { files.append((.tlsTrustUnreadable, authorities)) }
        for (code, file) in files where file.location != known {
            guard let reason = FileProbe.readError(file.value) else { continue }
            diagnostics.error(code, at: file.location, "\(file.value): \(reason)")
        }
    }
}

extension TLSMaterial {
    /// Warns of every certificate that is expired or not valid yet.
    func warn(at now: UnixTime, into diagnostics: inout Diagnostics) {
        for certificate in certificates {
            guard let (code, text) = certificate.validityError(at: now) else { continue }
            diagnostics.warning(code, at: certificate.location, text)
        }
    }
}

extension TLSMaterial.PresentedCertificate {
    private static let day: Int64 = 24 * 3600

    var file: String { facts.file }

    /// Seconds until it expires; negative if it has expired.
    func secondsLeft(at now: UnixTime) -> Int {
        let (seconds, overflow) = facts.notAfter.seconds.subtractingReportingOverflow(now.seconds)
        return overflow ? .min : Int(clamping: seconds)
    }

    /// Why it is not valid; `nil` while it is.
    func validityError(at now: UnixTime) -> (code: ErrorCode, text: String)? {
        if facts.isValid(at: now) { return nil }
        if facts.notAfter < now {
            let days = -(secondsLeft(at: now) / Int(Self.day))
            return (.certificateExpired, "\(file) expired \(days) days ago: peers that verify it reject the connection")
        }
        return (
            .certificateNotYetValid,
            "\(file) is not valid before \(facts.notBefore) (Unix time): peers that verify it reject the connection"
        )
    }
}

extension ErrorCode {
    static let certificateExpired: ErrorCode = "tls.own_certificate_expired"
    static let certificateNotYetValid: ErrorCode = "tls.own_certificate_not_yet_valid"
}

extension TLSIdentityFiles {
    fileprivate init(_ files: CertificateFiles) {
        self.init(certificateFile: files.certificate.value, keyFile: files.key.value)
    }
}

extension TLSServerOptions {
    fileprivate init(_ tls: ListenerTLS, offersHTTP2: Bool) {
        self.init(identities: tls.certificates.map { TLSIdentityFiles($0) })
        minimumVersion = tls.minimumVersion == .v13 ? .tls13 : .tls12
        ciphers = tls.ciphers?.value
        cipherSuites = tls.cipherSuites?.value
        clientAuthorityFile = tls.clientAuthorityFile?.value
        clientAuthentication =
            switch tls.clientAuthentication {
            case .none: .none
            case .optional: .optional
            case .required: .required
            }
        self.offersHTTP2 = offersHTTP2
    }
}

extension TLSClientOptions {
    fileprivate init(_ transport: UpstreamTransport) {
        let trust: Trust =
            if !transport.tls.verifies {
                .anyCertificate
            } else {
                transport.tls.authorityFile.map { .file($0.value) } ?? .system
            }
        self.init(
            trust: trust, identity: transport.tls.certificate.map { TLSIdentityFiles($0) },
            protocols: transport.version == .h2 ? [.http2] : [.http1])
    }
}

extension ListenerTLS {
    /// The position of the setting that caused the error.
    fileprivate func location(of setting: TLSError.Setting?) -> SourceLocation? {
        switch setting {
        case .certificate(let number):
            certificates.indices.contains(number) ? certificates[number].certificate.location : nil
        case .key(let number): certificates.indices.contains(number) ? certificates[number].key.location : nil
        case .clientAuthorities: clientAuthorityFile?.location
        case .ciphers: ciphers?.location
        case .cipherSuites: cipherSuites?.location
        case .authorities, nil: nil
        }
    }
}

extension UpstreamTLS {
    /// The position of the setting that caused the error.
    fileprivate func location(of setting: TLSError.Setting?) -> SourceLocation? {
        switch setting {
        case .certificate: certificate?.certificate.location
        case .key: certificate?.key.location
        case .authorities: authorityFile?.location
        case .clientAuthorities, .ciphers, .cipherSuites, nil: nil
        }
    }
}
