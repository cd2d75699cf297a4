private import MartletCore

extension AssertionConfiguration: ConfigurationDecodable {
    private static let standardHeader = "X-Auth-Assertion"
    private static let standardTTL = Duration.seconds(60)

    package static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .optional("header", .text, default: standardHeader, "The header that carries it."),
            .required("issuer", .text, "The `iss` claim: the identifier of this gateway."),
            .optional("audience", .text, "The `aud` claim; the upstream's name if absent."),
            .optional("ttl", .duration, default: "60s", "The lifetime of an assertion, 1s to 1h."),
        ])
        .withSecret("key", required: true, "The P-256 private signing key, as PEM.")
        .adding([
            .optional(
                "verify_key_files", .list(.path, nonEmpty: false), default: "[]",
                "P-256 keys, private or public, that are published but not used for signing: previous or next keys.")
        ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        let header = reader.optional("header", default: Located(Self.standardHeader, at: reader.location))
        do { _ = try HeaderName(header) } catch { reader.diagnostics.add(error) }
        self.header = header
        ttl = reader.optional("ttl", default: Self.standardTTL, in: .seconds(1) ... .seconds(3600))
        audience = reader.optional("audience", as: IdentifierText.self)?.text
        otherKeys = reader.secretFiles("verify_key_files")
        let issuer = reader.expected("issuer", as: IdentifierText.self)
        key = try reader.secret("key")
        guard let issuer else { throw .alreadyReported }
        self.issuer = issuer.text
    }
}

/// An issuer or audience of a token.
private struct IdentifierText: ConfigurationValue {
    let text: String

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        text = try node.text()
        guard (1...512).contains(text.utf8.count) else {
            throw node.error(.configBadValue, "must be a string of 1 to 512 bytes")
        }
    }
}
