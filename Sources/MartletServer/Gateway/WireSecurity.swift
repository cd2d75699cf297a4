internal import MartletConfig
internal import MartletCore
internal import MartletTLS

/// The TLS of a configuration: its certificates, keys and authorities, read from their files and checked.
struct WireSecurity: Sendable {
    /// A certificate that we show, and where it is shown.
    struct Shown: Sendable {
        /// `listener` or `upstream`.
        let side: String
        /// The listener's address, or the upstream's name.
        let place: String
        /// Of the key that names the file.
        let location: SourceLocation
        let facts: TLSCertificateFacts
    }

    /// For each listener in turn; `nil` is clear text.
    private(set) var listeners: [TLSServerContext?] = []
    /// For each upstream in turn; `nil` where no endpoint is `https`.
    private(set) var upstreams: [TLSClientContext?] = []
    /// Every certificate that we show.
    private(set) var certificates: [Shown] = []

    /// Reads every file; what is wrong is recorded at the key that names it.
    /// - Parameter tickets: the process's; sessions go on where they are the same as before.
    init(_ configuration: GatewayConfiguration, tickets: TLSTicketKeys, into diagnostics: inout Diagnostics) {
        for listener in configuration.server.listeners { add(listener, tickets, &diagnostics) }
        for upstream in configuration.upstreams { add(upstream, &diagnostics) }
        var seen: Set<[String]> = []
        certificates.removeAll { !seen.insert([$0.side, $0.place, $0.file]).inserted }
    }

    /// Clear text everywhere; for listeners that are not in the file.
    func withListeners(_ count: Int) -> WireSecurity {
        var changed = self
        changed.listeners = Array(repeating: nil, count: count)
        changed.certificates.removeAll { $0.side == "listener" }
        return changed
    }

    private mutating func add(
        _ listener: ListenerConfiguration, _ tickets: TLSTicketKeys, _ diagnostics: inout Diagnostics
    ) {
        guard let tls = listener.tls, !tls.certificates.isEmpty else { return listeners.append(nil) }
        for files in tls.certificates { diagnostics.warnOfExposure(files.key.value, at: files.key.location) }
        do {
            let context = try TLSServerContext(
                TLSServerOptions(tls, offersHTTP2: listener.offersHTTP2), tickets: tickets)
            listeners.append(context)
            for (files, facts) in zip(tls.certificates, context.certificates) {
                certificates.append(
                    Shown(
                        side: "listener", place: listener.address.value.configurationText,
                        location: files.certificate.location, facts: facts))
            }
        } catch {
            listeners.append(nil)
            let location = tls.location(of: error.place) ?? listener.address.location
            diagnostics.error(error.code, at: location, error.message)
            Self.reportUnreadable(tls.certificates, tls.clientAuthorityFile, but: location, &diagnostics)
        }
    }

    private mutating func add(_ upstream: UpstreamConfiguration, _ diagnostics: inout Diagnostics) {
        let isEncrypted = upstream.endpoints.contains { if case .https = $0.value { true } else { false } }
        guard isEncrypted else { return upstreams.append(nil) }
        let tls = upstream.wire.tls
        if let key = tls.certificate?.key { diagnostics.warnOfExposure(key.value, at: key.location) }
        do {
            let context = try TLSClientContext(TLSClientOptions(upstream.wire))
            upstreams.append(context)
            if let files = tls.certificate, let facts = context.certificate {
                certificates.append(
                    Shown(
                        side: "upstream", place: upstream.name.value, location: files.certificate.location,
                        facts: facts))
            }
        } catch {
            upstreams.append(nil)
            let location = tls.location(of: error.place) ?? upstream.name.location
            diagnostics.error(error.code, at: location, error.message)
            Self.reportUnreadable([tls.certificate].compactMap(\.self), tls.authorityFile, but: location, &diagnostics)
        }
    }

    /// Reports every other file that cannot be read: a context stops at the first.
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
            guard let reason = FileProbe.readFailure(file.value) else { continue }
            diagnostics.error(code, at: file.location, "\(file.value): \(reason)")
        }
    }
}

extension WireSecurity {
    /// Warns of every certificate that clients or servers refuse now.
    func warn(at now: UnixTime, into diagnostics: inout Diagnostics) {
        for shown in certificates {
            guard let (code, text) = shown.problem(at: now) else { continue }
            diagnostics.warning(code, at: shown.location, text)
        }
    }
}

extension WireSecurity.Shown {
    private static let day: Int64 = 24 * 3600

    var file: String { facts.file }

    /// Until it expires; negative when it has.
    func secondsLeft(at now: UnixTime) -> Int {
        let (seconds, overflow) = facts.notAfter.seconds.subtractingReportingOverflow(now.seconds)
        return overflow ? .min : Int(clamping: seconds)
    }

    /// What is wrong with it; `nil` while it is good.
    func problem(at now: UnixTime) -> (code: ErrorCode, text: String)? {
        if facts.isValid(at: now) { return nil }
        if facts.notAfter < now {
            let days = -(secondsLeft(at: now) / Int(Self.day))
            return (.certificateExpired, "\(file) expired \(days) days ago: nobody who verifies it connects any more")
        }
        return (
            .certificateNotYetValid,
            "\(file) is not good before \(facts.notBefore) (Unix time): nobody who verifies it connects until then"
        )
    }
}

extension ErrorCode {
    /// A certificate that we show has expired.
    static let certificateExpired: ErrorCode = "tls.own_certificate_expired"
    /// A certificate that we show is not good yet.
    static let certificateNotYetValid: ErrorCode = "tls.own_certificate_not_yet_valid"
}

extension TLSIdentityFiles {
    fileprivate init(_ files: CertificateFiles) {
        self.init(certificateFile: files.certificate.value, keyFile: files.key.value)
    }
}

extension TLSServerOptions {
    /// `tls:` of a listener.
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
    /// `tls:` and `protocol:` of an upstream.
    fileprivate init(_ wire: UpstreamWire) {
        let trust: Trust =
            if !wire.tls.verifies { .anyone } else { wire.tls.authorityFile.map { .file($0.value) } ?? .system }
        self.init(
            trust: trust, identity: wire.tls.certificate.map { TLSIdentityFiles($0) },
            protocols: wire.version == .h2 ? [.http2] : [.http1])
    }
}

extension ListenerTLS {
    /// Where the setting that is at fault stands.
    fileprivate func location(of place: TLSError.Place?) -> SourceLocation? {
        switch place {
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
    /// Where the setting that is at fault stands.
    fileprivate func location(of place: TLSError.Place?) -> SourceLocation? {
        switch place {
        case .certificate: certificate?.certificate.location
        case .key: certificate?.key.location
        case .authorities: authorityFile?.location
        case .clientAuthorities, .ciphers, .cipherSuites, nil: nil
        }
    }
}
