public import MartletConfig
internal import MartletCore
internal import MartletCrypto
internal import MartletProvider

/// The block of a provider whose `kind` is `http`.
public struct HTTPConfiguration: ConfigurationDecodable {
    /// `cache`: which responses may be reused.
    public struct Cache: ConfigurationDecodable {
        let usesResponse: Bool
        let maximum: Duration

        init() { (usesResponse, maximum) = (true, .seconds(60)) }

        public init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
            usesResponse = reader.optional("from_answer", default: true)
            maximum = reader.optional("max", default: .seconds(60), in: .seconds(0) ... .seconds(86_400))
        }

        public static var grammar: ConfigurationGrammar? {
            ConfigurationGrammar([
                .optional("from_answer", .boolean, default: "true", "Whether `cache_for` of a response counts."),
                .optional("max", .duration, default: "60s", "The longest time for which a response is reused."),
            ])
        }
    }

    /// `circuit`: when the service is not called for a while.
    public struct CircuitBlock: ConfigurationDecodable {
        let failures: Int
        let open: Duration

        init() { (failures, open) = (5, .seconds(10)) }

        public init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
            failures = reader.optional("failures", default: 5, in: 1...1_000)
            open = reader.optional("open", default: .seconds(10), in: .milliseconds(100) ... .seconds(600))
        }

        public static var grammar: ConfigurationGrammar? {
            ConfigurationGrammar([
                .optional("failures", .integer(1...1_000), default: "5", "How many failures in a row open it."),
                .optional("open", .duration, default: "10s", "How long no call is made then."),
            ])
        }
    }

    let address: Located<ServiceAddress>
    let accepts: [AcceptRule]
    let signIn: Bool
    /// Whose identifier upstreams get for a credential.
    let subjectSource: SubjectSource
    let signingKey: Located<Secret>?
    let timeout: Duration
    let cache: Cache
    let cacheKey: Set<RequestPart>
    let circuit: CircuitBlock

    public init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        signIn = reader.optional("sign_in", default: false)
        let source: Located<Source>? = reader.optional("subject_source")
        // Machines have no use for an account each; users who log in have one anyway.
        subjectSource = (source?.value ?? (signIn ? .account : .provider)) == .account ? .account : .provider
        signingKey = reader.optionalSecret("signing_key")
        timeout = reader.optional("timeout", default: .seconds(1), in: .milliseconds(50) ... .seconds(10))
        cache = reader.block("cache") ?? Cache()
        cacheKey = Set(reader.optional("cache_key", default: [Part]()).map(\.part))
        circuit = reader.block("circuit") ?? CircuitBlock()
        accepts = reader.blocks("accepts", as: AcceptRule.self).map(\.value)
        if accepts.isEmpty, !signIn, !reader.diagnostics.hasErrors {
            reader.error(
                .configMissingKey, at: reader.location, "\(reader.title) needs accepts, or sign_in: true, or both")
        }
        address = try reader.required("url")
    }

    /// `subject_source`, as a value of the configuration.
    private enum Source: String, Sendable, CaseIterable, ConfigurationValue {
        case account, provider
    }

    /// A part of the request, as a value of the configuration.
    private enum Part: String, Sendable, CaseIterable, ConfigurationValue {
        case method, host, path

        var part: RequestPart {
            switch self {
            case .method: .method
            case .host: .host
            case .path: .path
            }
        }
    }

    public static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .required(
                "url", .either([.url, .pattern("^unix:/.+$")]),
                "The service: https, or a loopback address, or `unix:/path/to/socket:/path`."),
            .optional(
                "accepts", .list(.block(of: AcceptRule.self), nonEmpty: true),
                "The credentials that are sent; each entry has one of the next four keys."),
            .optional(
                "sign_in", .boolean, default: "false", "Whether the bodies of logins are sent to the service, too."),
            .optional(
                "subject_source", .choice(Source.allCases.map(\.rawValue)),
                "Who a credential is: an account, or `<provider>:<subject>`; by default `account` with `sign_in`, else "
                    + "`provider`."),
            .optional("timeout", .duration, default: "1s", "The timeout of a call, with the time that it waits."),
            .optional("cache", .block(of: Cache.self), default: "{}", "Which responses are reused."),
            .optional(
                "cache_key", .list(.choice(Part.allCases.map(\.rawValue)), nonEmpty: false),
                default: "[]", "The parts of a request that responses depend on."),
            .optional(
                "circuit", .block(of: CircuitBlock.self), default: "{}", "When the service is not called for a while."),
        ]).withSecret(
            "signing_key", required: false, "The key that signs calls: `whsec_` and 24 to 64 bytes in base64.")
    }

    /// Checks across fields.
    func validate(into diagnostics: inout Diagnostics) {
        if !address.value.isTrustworthy {
            diagnostics.error(
                .configBadURL, at: address.location, "url: must be https, unless the host is a loopback address")
        }
        if let signingKey, WebhookSigner(signingKey.value) == nil {
            diagnostics.error(
                .configBadValue, at: signingKey.location,
                "signing_key: must be 24 to 64 bytes in base64, with or without whsec_ before them")
        }
        for (index, rule) in accepts.enumerated() {
            for other in accepts[..<index] where overlaps(other.source.value, rule.source.value) {
                diagnostics.error(
                    .configConflictingKeys, at: rule.source.location,
                    "accepts: another entry accepts the same credentials")
            }
        }
    }

    private func overlaps(_ left: CredentialSource, _ right: CredentialSource) -> Bool {
        switch (left, right) {
        case (.bearerPrefix(let mine), .bearerPrefix(let theirs)): mine.hasPrefix(theirs) || theirs.hasPrefix(mine)
        case (.header(let mine), .header(let theirs)): mine.lowercased() == theirs.lowercased()
        default: left == right
        }
    }
}
