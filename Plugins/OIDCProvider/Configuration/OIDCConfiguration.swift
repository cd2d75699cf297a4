public import MartletConfig
internal import MartletCore
internal import MartletJOSE
internal import MartletJSON
internal import MartletProvider

/// The block of a provider whose `kind` is `oidc`.
public struct OIDCConfiguration: ConfigurationDecodable {
    /// Where the keys of the issuer come from.
    enum Keys: Sendable {
        /// From the URL in the issuer's discovery document.
        case discovered
        case url(Located<URLText>)
        /// From a file, read with the configuration.
        case file(KeySet)
    }

    /// The issuer, whose discovery document is below it.
    let issuer: Located<String>
    /// The accepted values of `iss`.
    let issuers: [String]
    let keys: Keys
    /// Any of them must be in `aud`.
    let audiences: NonEmpty<Located<String>>
    /// The claim that names the audience of bearer tokens, if it is not `aud`.
    let audienceClaim: ClaimPath?
    let algorithms: Set<SignatureAlgorithm>
    /// Whether bearer tokens must be access tokens (RFC 9068).
    let demandsAccessTokens: Bool
    /// Whether tokens may be, or have to be, bound to a key of the client.
    let dpop: DPoPMode
    /// Whether tokens have to be bound to a certificate of the client (RFC 8705 §3).
    let isBound: Bool
    /// The accepted values of `azp`; `nil` for any, or none.
    let authorizedParties: [String]?
    /// The claim that identifies the user, if it is not `sub`.
    let subjectClaim: Located<ClaimPath>?
    let renames: [ClaimRename]
    /// How long after `exp` a token is still accepted.
    let leeway: Duration
    /// How long after `iat` a bearer token is accepted.
    let maximumAge: AgeLimit
    /// The timeout of one call to the issuer.
    let timeout: Duration
    /// What opaque tokens begin with.
    let prefixes: [Located<String>]
    /// `nil` if there are no opaque tokens.
    let introspection: IntrospectionBlock?
    /// Sign-in by redirect; `nil` if it is off.
    let web: OIDCWebBlock?
    /// The position of `web`; `nil` if it is off.
    public let redirectLocation: SourceLocation?
    /// Logins of apps; `nil` if they are off.
    let login: LoginBlock?

    public init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        let preset = try Self.preset(&reader)
        let written = reader.optional("algorithms", as: NonEmpty<Algorithm>.self)
        let algorithms = Set(written?.map(\.value) ?? [preset.algorithm])
        self.algorithms = algorithms
        keys = try Self.keys(&reader, allowing: algorithms)
        demandsAccessTokens = reader.optional("access_tokens", default: false)
        dpop = reader.optional("dpop", default: .off)
        isBound = reader.optional("bound", default: false)
        authorizedParties = reader.optional("authorized_parties", as: NonEmpty<String>.self)?.elements
        subjectClaim = reader.optional("subject_claim", as: Located<ClaimPath>.self)
        audienceClaim = reader.optional("audience_claim")
        renames = ClaimRename.read(&reader) ?? preset.renames
        leeway = reader.optional("leeway", default: .zero, in: .zero ... .seconds(300))
        maximumAge = reader.optional("max_age", default: AgeLimit.day)
        timeout = reader.optional("timeout", default: .seconds(5), in: .milliseconds(100) ... .seconds(60))
        prefixes = reader.blocks("accepts", as: AcceptBlock.self).map(\.value.bearerPrefix)
        introspection = reader.block("introspection", as: IntrospectionBlock.self)
        web = reader.block("web", as: OIDCWebBlock.self)
        redirectLocation = web == nil ? nil : reader.node("web")?.location
        login = reader.block("login", as: LoginBlock.self)
        let (issuer, issuers) = try Self.issuers(&reader, preset)
        self.issuer = issuer
        self.issuers = issuers
        audiences = try reader.required("audiences")
    }

    private static func preset(_ reader: inout ConfigurationReader) throws(ConfigurationError) -> Preset.Values {
        if let preset = reader.optional("preset", as: Preset.self) {
            let values = try preset.values(from: &reader)
            guard values.issuer != nil || reader.has("issuer") else {
                throw ConfigurationError(
                    .configMissingKey, at: reader.location,
                    "missing key '\(preset.neededKey)' in \(reader.title), which 'preset: \(preset.rawValue)' needs")
            }
            return values
        }
        for key in ["tenant", "base_url"] where reader.has(key) {
            guard let node = reader.node(key) else { continue }
            reader.error(.configConflictingKeys, at: node.location, "\(key): is unused without 'preset'")
        }
        return Preset.Values()
    }

    /// The issuer and the accepted values of `iss`: other spellings of a preset are those of its own issuer.
    private static func issuers(
        _ reader: inout ConfigurationReader, _ preset: Preset.Values
    ) throws(ConfigurationError) -> (Located<String>, [String]) {
        let written = reader.optional("issuers", as: NonEmpty<String>.self)?.elements
        if let issuer = preset.issuer, !reader.has("issuer") {
            return (Located(issuer, at: reader.location), written ?? [issuer] + preset.otherIssuers)
        }
        let issuer: Located<String> = try reader.required("issuer")
        return (issuer, written ?? [issuer.value])
    }

    private static func keys(
        _ reader: inout ConfigurationReader, allowing algorithms: Set<SignatureAlgorithm>
    ) throws(ConfigurationError) -> Keys {
        let url = reader.optional("jwks_url", as: Located<URLText>.self)
        let file = reader.file("jwks_file", maximumBytes: KeySet.maximumBytes)
        if reader.has("jwks_url"), let node = reader.node("jwks_file") {
            throw ConfigurationError(
                .configConflictingKeys, at: node.location,
                "'jwks_file' and 'jwks_url' are both given in \(reader.title)")
        }
        if reader.has("jwks_url") || reader.has("jwks_file"), url == nil, file == nil { throw .alreadyReported }
        if let url { return .url(url) }
        guard let file else { return .discovered }
        do throws(JOSEError) { return .file(try KeySet(document: file.value, allowing: algorithms)) } catch {
            throw ConfigurationError(.configBadValue, at: file.location, "jwks_file: \(error.message)")
        }
    }

    /// The algorithms as the configuration file spells them: all with public keys.
    enum Algorithm: String, CaseIterable, ConfigurationValue {
        case rs256 = "RS256"
        case rs384 = "RS384"
        case rs512 = "RS512"
        case ps256 = "PS256"
        case ps384 = "PS384"
        case ps512 = "PS512"
        case es256 = "ES256"
        case es384 = "ES384"
        case es512 = "ES512"
        case edDSA = "EdDSA"

        var value: SignatureAlgorithm {
            switch self {
            case .rs256: .rs256
            case .rs384: .rs384
            case .rs512: .rs512
            case .ps256: .ps256
            case .ps384: .ps384
            case .ps512: .ps512
            case .es256: .es256
            case .es384: .es384
            case .es512: .es512
            case .edDSA: .edDSA
            }
        }
    }
}

// MARK: - Grammar

extension OIDCConfiguration {
    public static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .optional(
                "preset", .choice(Preset.allCases.map(\.rawValue)),
                "A known service whose keys are filled in; a key that is written wins."),
            .optional("tenant", .text, "The id of the directory, which `preset: microsoft` needs."),
            .optional("base_url", .url, "Where the service is, for `preset: keycloak` and `preset: auth0`."),
            .optional(
                "issuer", .text,
                "The issuer; its keys and endpoints are discovered below this URL. Required without a preset."),
            .optional(
                "issuers", .list(.text, nonEmpty: true), "The accepted values of a token's `iss`; by default `issuer`."),
            .optional(
                "jwks_url", .url, "The URL of the issuer's key set, instead of discovery; https, or a loopback address."
            ),
            .optional(
                "jwks_file", .path,
                "A file with the issuer's key set, instead of discovery; read with the configuration."),
            .required(
                "audiences", .list(.text, nonEmpty: true), "Who tokens are for; one of them must be in a token's `aud`."
            ),
            .optional(
                "algorithms", .list(.choice(Algorithm.allCases.map(\.rawValue)), nonEmpty: true), default: "[RS256]",
                "The accepted signature algorithms."),
            .optional(
                "dpop", .choice(DPoPMode.allCases.map(\.rawValue)), default: DPoPMode.off.rawValue,
                "Whether tokens may be, or have to be, bound to a key of the client (RFC 9449)."),
            .optional(
                "bound", .boolean, default: "false",
                "Whether tokens have to be bound to a certificate of the client (RFC 8705)."),
            .optional(
                "access_tokens", .boolean, default: "false",
                "Whether bearer tokens must be access tokens (RFC 9068), with `typ: at+jwt`."),
            .optional(
                "authorized_parties", .list(.text, nonEmpty: true),
                "The clients whose bearer tokens are accepted; `azp` is required then."),
            .optional(
                "subject_claim", .claim, default: "sub", "The claim that identifies the user: a text or a whole number."
            ),
            .optional(
                "audience_claim", .claim, default: "aud",
                "The claim of bearer tokens that must have one of `audiences`, such as `client_id`."),
            .optional(
                "rename", ClaimRename.shape,
                "New names of claims, for rules and headers; not `iss`, `sub`, `aud`, `exp`, `iat`, `nbf`, `azp` or `cnf`."
            ),
            .optional("leeway", .duration, default: "0s", "How long after its `exp` a token is still accepted."),
            .optional(
                "max_age", .either([.duration, .choice(["off"])]), default: "24h",
                "How long after its `iat` a token is accepted as a bearer token; `off`: until it expires, also without"
                    + " `iat`."),
            .optional(
                "timeout", .duration, default: "5s",
                "The timeout of a call to the issuer; keys are fetched with `jwks.fetch_timeout`."),
            .optional(
                "accepts", .list(.block(of: AcceptBlock.self), nonEmpty: true),
                "What opaque tokens begin with; only these are sent to `introspection`."),
            .optional(
                "introspection", .block(of: IntrospectionBlock.self),
                "Where the issuer is asked about opaque tokens (RFC 7662); absent: there are none."),
            .optional("web", .block(of: OIDCWebBlock.self), "Sign-in by redirect for browsers; absent: none."),
            .optional("login", .block(of: LoginBlock.self), "Logins of apps with an ID token; absent: none."),
        ])
    }
}
