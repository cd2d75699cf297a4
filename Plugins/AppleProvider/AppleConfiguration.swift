public import MartletConfig
private import MartletCore
public import MartletJOSE

/// The block of a provider whose `kind` is `apple`.
public struct AppleConfiguration: ConfigurationDecodable {
    /// The client ids whose tokens are accepted, bundle IDs and Services IDs; never empty.
    public let audiences: NonEmpty<Located<String>>
    /// The accepted values of `iss`, compared byte by byte.
    public let issuers: NonEmpty<Located<String>>
    /// The URL of Apple's key set.
    public let jwksURL: Located<URLText>
    /// The base URL of Apple's other endpoints.
    public let baseURL: Located<URLText>
    public let algorithms: Set<SignatureAlgorithm>
    /// How long after `exp` a token is still accepted.
    public let leeway: Duration
    /// The timeout of one call to Apple.
    public let timeout: Duration
    /// How long after `iat` a token is accepted as a bearer token.
    public let maximumAge: Duration
    /// Whether a login's token must be bound to it by a nonce.
    public let nonce: NoncePolicy
    /// The form in which the app puts the nonce into its request to Apple.
    public let nonceForm: NonceForm
    /// How long after `iat` a token is accepted for a login.
    public let loginMaximumAge: Duration

    /// Whether a login needs a nonce.
    public enum NoncePolicy: String, Sendable, CaseIterable, ConfigurationValue {
        /// The nonce is ignored.
        case off
        /// The nonce may be the app's own or issued by the gateway, or be missing from both the body and the token.
        case optional
        /// The nonce must have been issued by the gateway.
        case required
    }

    /// What the token's `nonce` is; the body's is always the raw one.
    public enum NonceForm: String, Sendable, CaseIterable, ConfigurationValue {
        /// The raw nonce.
        case raw
        /// The SHA-256 of the nonce in lower-case hexadecimal.
        case sha256Hex = "sha256_hex"
    }

    public init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        let here = reader.location
        issuers = reader.optional("issuers", default: NonEmpty(Located(Defaults.issuer, at: here)))
        let base = reader.optional("base_url", default: Located(Defaults.baseURL, at: here))
        baseURL = base
        jwksURL = reader.optional("jwks_url", default: Self.keys(below: base))
        algorithms = Set(reader.optional("algorithms", default: NonEmpty(Algorithm.rs256)).map(\.value))
        leeway = reader.optional("leeway", default: Defaults.leeway, in: .zero ... .seconds(300))
        timeout = reader.optional("timeout", default: Defaults.timeout, in: .milliseconds(100) ... .seconds(60))
        maximumAge = reader.optional("max_age", default: Defaults.maximumAge, in: .seconds(1) ... .seconds(30 * 86_400))
        nonce = reader.optional("nonce", default: .optional)
        nonceForm = reader.optional("nonce_form", default: .raw)
        loginMaximumAge = reader.optional(
            "login_max_age", default: Defaults.loginMaximumAge, in: .seconds(1) ... .seconds(86_400))
        for key in Self.reservedKeys { reader.unsupported(key) }
        audiences = try reader.required("audiences")
    }

    private enum Defaults {
        static let issuer = "https://appleid.apple.com"
        static let baseURL: URLText = "https://appleid.apple.com"
        static let leeway = Duration.zero
        static let timeout = Duration.seconds(5)
        static let maximumAge = Duration.seconds(86_400)
        static let loginMaximumAge = Duration.seconds(600)
    }

    private static let keysPath = "/auth/keys"

    /// Reserved keys for exchanging codes, which is not supported.
    private static let reservedKeys = ["team_id", "key_id", "private_key", "private_key_file"]

    private static func keys(below base: Located<URLText>) -> Located<URLText> {
        let text = base.value.text.hasSuffix("/") ? String(base.value.text.dropLast()) : base.value.text
        return Located(URLText(text + keysPath) ?? base.value, at: base.location)
    }

    /// The algorithms as the configuration file spells them.
    private enum Algorithm: String, CaseIterable, ConfigurationValue {
        case rs256 = "RS256"
        case es256 = "ES256"

        var value: SignatureAlgorithm {
            switch self {
            case .rs256: .rs256
            case .es256: .es256
            }
        }
    }
}

// MARK: - Grammar and validation

extension AppleConfiguration {
    public static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .required(
                "audiences", .list(.text, nonEmpty: true),
                "The client ids whose tokens are accepted; a token's `aud` must be one of them."),
            .optional(
                "issuers", .list(.text, nonEmpty: true), default: "[\(Defaults.issuer)]",
                "The accepted values of a token's `iss`."
            ),
            .optional("base_url", .url, default: Defaults.baseURL.text, "The base URL of Apple's endpoints."),
            .optional(
                "jwks_url", .url, default: Defaults.baseURL.text + keysPath,
                "The URL of Apple's key set; https, or a loopback address."),
            .optional(
                "algorithms", .list(.choice(Algorithm.allCases.map(\.rawValue)), nonEmpty: true), default: "[RS256]",
                "The accepted signature algorithms."),
            .optional("leeway", .duration, default: "0s", "How long after its `exp` a token is still accepted."),
            .optional("timeout", .duration, default: "5s", "The timeout of one call to Apple."),
            .optional(
                "max_age", .duration, default: "24h", "How long after its `iat` a token is accepted as a bearer token."),
            .optional(
                "nonce", .choice(NoncePolicy.allCases.map(\.rawValue)), default: "optional",
                "Whether a login needs a nonce; `required` accepts only those that the gateway issued."),
            .optional(
                "nonce_form", .choice(NonceForm.allCases.map(\.rawValue)), default: "raw",
                "The form in which the app puts the nonce into its request to Apple."),
            .optional(
                "login_max_age", .duration, default: "10m", "How long after its `iat` a token is accepted for a login."),
        ])
    }

    /// Checks that span several fields or list entries.
    func validate(into diagnostics: inout Diagnostics) {
        for (key, url) in [("jwks_url", jwksURL), ("base_url", baseURL)] where !url.value.isTrustworthy {
            diagnostics.error(
                .configBadURL, at: url.location, "\(key): must be https, unless the host is a loopback address")
        }
        for (key, list) in [("audiences", audiences), ("issuers", issuers)] {
            for entry in list where entry.value.isEmpty {
                diagnostics.error(.configBadValue, at: entry.location, "\(key): an empty string matches nothing")
            }
        }
    }
}
