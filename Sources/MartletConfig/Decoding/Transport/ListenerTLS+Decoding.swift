extension ListenerTLS.Version: ConfigurationValue {}
extension ListenerTLS.ClientAuthentication: ConfigurationValue {}

extension ListenerTLS: ConfigurationDecodable {
    package static var grammar: ConfigurationGrammar? {
        .init([
            .optional("certificate_file", .path, "The certificate as PEM, followed by its chain."),
            .optional("key_file", .path, "Its private key as PEM."),
            .optional(
                "certificates", .list(.block(of: CertificateFiles.self), nonEmpty: false), default: "[]",
                "Further certificates, chosen by SNI; the first one is the default."),
            .optional(
                "min_version", .choice(Version.allCases.map(\.rawValue)), default: "1.2",
                "The minimum TLS version."),
            .optional("ciphers", .text, "OpenSSL cipher names for TLS 1.2, separated by `:`."),
            .optional("cipher_suites", .text, "The same for TLS 1.3."),
            .optional("client_ca_file", .path, "The certificate authorities of client certificates, as PEM."),
            .optional(
                "client_auth", .choice(ClientAuthentication.allCases.map(\.rawValue)), default: "none",
                "Whether client certificates are requested (`optional`) or required."),
            .optional(
                "hsts", .duration, "The `max-age` of `Strict-Transport-Security`, in whole seconds."),
        ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        minimumVersion = reader.optional("min_version", default: .v12)
        ciphers = reader.nonEmptyText("ciphers")
        cipherSuites = reader.nonEmptyText("cipher_suites")
        clientAuthorityFile = reader.file("client_ca_file")
        clientAuthentication = reader.optional("client_auth", default: .none)
        strictTransport = reader.optional("hsts")
        certificates = reader.certificatePair().map { [$0] } ?? []
        certificates += reader.blocks("certificates").map(\.value)
        let others = reader.node("certificates")
        let hasOthers = others != nil && others?.elements?.isEmpty != true
        if !hasOthers, !reader.has("certificate_file"), !reader.has("key_file") {
            reader.error(
                .configMissingKey, at: others?.location ?? reader.location,
                "\(reader.title) has no certificate: it needs certificate_file and key_file, or certificates")
        }
        checkClients(&reader)
        if let ciphers, minimumVersion == .v13 {
            reader.diagnostics.warning(
                .configUnused, at: ciphers.location,
                "ciphers: unused, because they apply to TLS 1.2, which min_version disables")
        }
    }

    private func checkClients(_ reader: inout ConfigurationReader) {
        switch clientAuthentication {
        case .none:
            guard let clientAuthorityFile else { return }
            reader.diagnostics.warning(
                .configInsecure, at: clientAuthorityFile.location,
                "client_ca_file: no client certificate is requested unless client_auth is optional or required")
        case .optional, .required:
            guard let node = reader.node("client_auth"), !reader.has("client_ca_file") else { return }
            reader.error(
                .configMissingKey, at: node.location,
                "client_auth: client_ca_file is needed to verify client certificates")
        }
    }
}

extension CertificateFiles: ConfigurationDecodable {
    package static var grammar: ConfigurationGrammar? {
        .init([
            .required("certificate_file", .path, "The certificate as PEM, followed by its chain."),
            .required("key_file", .path, "Its private key as PEM."),
        ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        let certificate = reader.expected("certificate_file", as: Located<FilePath>.self)
        let key = reader.expected("key_file", as: Located<FilePath>.self)
        guard let certificate, let key else { throw .alreadyReported }
        self.init(
            certificate: Located(certificate.value.text, at: certificate.location),
            key: Located(key.value.text, at: key.location))
    }
}

extension ConfigurationReader {
    /// The resolved path under a key; errors are recorded.
    mutating func file(_ key: String) -> Located<String>? {
        optional(key, as: Located<FilePath>.self).map { Located($0.value.text, at: $0.location) }
    }

    /// The text under a key, which must not be empty.
    mutating func nonEmptyText(_ key: String) -> Located<String>? {
        guard let text = optional(key, as: Located<String>.self) else { return nil }
        if text.value.isEmpty { error(.configBadValue, at: text.location, "\(key): must not be empty") }
        return text
    }

    /// `certificate_file` and `key_file` of the block itself, both or neither.
    mutating func certificatePair() -> CertificateFiles? {
        let (certificate, key) = (file("certificate_file"), file("key_file"))
        for (present, missing) in [("certificate_file", "key_file"), ("key_file", "certificate_file")] {
            guard let node = node(present), !has(missing) else { continue }
            error(.configMissingKey, at: node.location, "missing key '\(missing)' beside '\(present)' in \(title)")
        }
        guard let certificate, let key else { return nil }
        return CertificateFiles(certificate: certificate, key: key)
    }
}
