internal import MartletCore

/// `tls:` of a listener.
@frozen package struct ListenerTLS: KeyedBlock, Hashable {
    /// The minimum version.
    @frozen package enum Version: String, ConfigurationChoice {
        case v12 = "1.2"
        case v13 = "1.3"
    }

    /// Whether client certificates are requested.
    @frozen package enum ClientAuthentication: String, ConfigurationChoice { case none, optional, required }

    /// Chosen by SNI; the first one is the default.
    package var certificates: [CertificateFiles]
    package var minimumVersion = Version.v12
    /// OpenSSL cipher names for TLS 1.2, separated by colons; `nil` is the built-in list.
    package var ciphers: Located<String>?
    package var cipherSuites: Located<String>?
    package var clientAuthorityFile: Located<String>?
    package var clientAuthentication = ClientAuthentication.none
    /// `Strict-Transport-Security: max-age`; `nil` sends none.
    package var strictTransport: Duration?

    package init(certificates: [CertificateFiles]) { self.certificates = certificates }

    init() { self.init(certificates: []) }

    static let keys: [ConfigurationKey<Self>] = [
        .certificate(\.own, "The certificate as PEM, followed by its chain.", "Its private key as PEM."),
        .blocks("certificates", \.others, "Further certificates, chosen by SNI; the first one is the default."),
        .key("min_version", \.minimumVersion, "The minimum TLS version."),
        .key("ciphers", \.ciphers, where: .notEmpty, "OpenSSL cipher names for TLS 1.2, separated by `:`."),
        .key("cipher_suites", \.cipherSuites, where: .notEmpty, "The same for TLS 1.3."),
        .key(
            "client_ca_file", \.clientAuthorityFile, as: Located<PathText>?.self,
            "The certificate authorities of client certificates, as PEM."),
        .key(
            "client_auth", \.clientAuthentication,
            "Whether client certificates are requested (`optional`) or required."),
        .key("hsts", \.strictTransport, "The `max-age` of `Strict-Transport-Security`, in whole seconds."),
        .check { tls, reader in
            tls.checkCertificates(&reader)
            tls.checkClients(&reader)
            guard tls.ciphers != nil, tls.minimumVersion == .v13 else { return }
            reader.warn("ciphers", .configUnused, "unused, because they apply to TLS 1.2, which min_version disables")
        },
    ]

    /// What `certificate_file` and `key_file` name, before those of `certificates`.
    private var own: CertificateFiles? {
        get { nil }
        set { certificates = newValue.map { [$0] } ?? [] }
    }

    private var others: [CertificateFiles] {
        get { [] }
        set { certificates += newValue }
    }

    private func checkCertificates(_ reader: inout ConfigurationReader) {
        let others = reader.node("certificates")
        let hasOthers = others != nil && others?.elements?.isEmpty != true
        guard !hasOthers, !reader.has("certificate_file"), !reader.has("key_file") else { return }
        reader.error(
            .configMissingKey, at: others?.location ?? reader.location,
            "\(reader.title) has no certificate: it needs certificate_file and key_file, or certificates")
    }

    private func checkClients(_ reader: inout ConfigurationReader) {
        switch clientAuthentication {
        case .none:
            guard clientAuthorityFile != nil else { return }
            reader.warn(
                "client_ca_file", .configInsecure,
                "no client certificate is requested unless client_auth is optional or required")
        case .optional, .required:
            guard !reader.has("client_ca_file") else { return }
            reader.reject(
                "client_auth", .configMissingKey, "client_ca_file is needed to verify client certificates")
        }
    }
}

/// A certificate chain and its key, as PEM files.
@frozen package struct CertificateFiles: KeyedBlock, Hashable {
    package var certificate: Located<String>
    package var key: Located<String>

    package init(certificate: Located<String>, key: Located<String>) {
        self.certificate = certificate
        self.key = key
    }

    init() { self.init(certificate: .unread, key: .unread) }

    static let keys: [ConfigurationKey<Self>] = [
        .required(
            "certificate_file", \.certificate, as: Located<PathText>.self,
            "The certificate as PEM, followed by its chain."),
        .required("key_file", \.key, as: Located<PathText>.self, "Its private key as PEM."),
    ]
}

extension ConfigurationReader {
    /// `certificate_file` and `key_file` of the block itself, both or neither.
    mutating func certificatePair() -> CertificateFiles? {
        let certificate = optional("certificate_file", as: Located<PathText>.self)
        let key = optional("key_file", as: Located<PathText>.self)
        for (present, missing) in [("certificate_file", "key_file"), ("key_file", "certificate_file")] {
            guard let node = node(present), !has(missing) else { continue }
            error(.configMissingKey, at: node.location, "missing key '\(missing)' beside '\(present)' in \(title)")
        }
        guard let certificate, let key else { return nil }
        return CertificateFiles(certificate: certificate.content, key: key.content)
    }
}
