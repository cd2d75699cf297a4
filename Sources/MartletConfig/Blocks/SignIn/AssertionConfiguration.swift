package import MartletCore

/// `assertion:` — the signed assertion for upstreams.
@frozen package struct AssertionConfiguration: KeyedBlock {
    package var header: Located<String>
    package var issuer: String
    package var ttl = Duration.seconds(60)
    package var audience: String?
    package var key: Located<Secret>
    package var otherKeys: [Located<Secret>] = []

    static let keys: [ConfigurationKey<Self>] = [
        .key("header", \.header, "The header that carries it."),
        .required("issuer", \.issuer, where: identifier, "The `iss` claim: the identifier of this gateway."),
        .key("audience", \.audience, where: identifier, "The `aud` claim; the upstream's name if absent."),
        .key("ttl", \.ttl, in: .seconds(1) ... .seconds(3600), "The lifetime of an assertion, 1s to 1h."),
        .requiredSecret("key", \.key, "The P-256 private signing key, as PEM."),
        .secretFiles(
            "verify_key_files", \.otherKeys, default: "[]",
            "P-256 keys, private or public, that are published but not used for signing: previous or next keys."),
        .check(always: true) { assertion, reader in
            do throws(ConfigurationError) { _ = try HeaderName(assertion.header) } catch {
                reader.diagnostics.add(error)
            }
        },
    ]

    private static let identifier = TextRule(
        .configBadValue, { (1...512).contains($0.utf8.count) }, { _ in "must be a string of 1 to 512 bytes" })
}

extension AssertionConfiguration {
    init() { self.init(at: .none) }

    init(at location: SourceLocation) {
        self.init(
            header: Located("X-Auth-Assertion", at: location), issuer: "", key: .unread)
    }
}
