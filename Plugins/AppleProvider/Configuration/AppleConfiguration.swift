public import MartletConfig
internal import MartletCore
public import MartletJOSE
internal import MartletProvider

/// The block of a provider whose `kind` is `apple`.
public struct AppleConfiguration: ConfigurationDecodable {
    /// The client ids whose tokens are accepted, bundle IDs and Services IDs, that of `web` included; never empty.
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
    /// The forms in which apps put the nonce into their requests to Apple.
    let nonceForms: NonceForms
    /// How long after `iat` a token is accepted for a login.
    public let loginMaximumAge: Duration
    /// The developer account whose keys sign calls to Apple; `nil` without a key.
    let developer: Developer?
    /// When refresh tokens are checked; `nil` if they are not.
    let check: CheckSchedule?
    /// The position of `notifications: true`; `nil` without notifications.
    public let notificationsLocation: SourceLocation?
    /// Sign-in by redirect; `nil` if it is off.
    let web: WebBlock?
    /// The position of `web`; `nil` if it is off.
    public let redirectLocation: SourceLocation?
    /// The team that the app belonged to; `nil` if it did not move.
    let migration: Migration?

    /// A team of the developer account with the key in use.
    struct Developer: Sendable {
        let team: String
        let key: DeveloperKey
        let location: SourceLocation
    }

    /// The move of the app from another team.
    struct Migration: Sendable {
        let fromTeam: String
        /// When `transfer_sub` is no longer recognized.
        let end: UnixTime
        let location: SourceLocation
    }

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
        nonceForms = NonceForms(&reader)
        loginMaximumAge = reader.optional(
            "login_max_age", default: Defaults.loginMaximumAge, in: .seconds(1) ... .seconds(86_400))
        let web = reader.block("web", as: WebBlock.self)
        self.web = web
        redirectLocation = web == nil ? nil : reader.node("web")?.location
        developer = try Self.developer(&reader)
        web?.checkKey(developer != nil, into: &reader.diagnostics)
        check = reader.block("check", as: CheckBlock.self).map {
            CheckSchedule(every: $0.every, spread: $0.spread, rate: $0.rate)
        }
        let notifies = reader.optional("notifications", as: Located<Bool>.self)
        notificationsLocation = notifies?.value == true ? notifies?.location : nil
        migration = try Self.migration(&reader, of: developer)
        if check != nil, developer == nil, let node = reader.node("check") {
            throw ConfigurationError(
                .configMissingKey, at: node.location, "check: needs a key: team_id, key_id and private_key_file")
        }
        audiences = Self.adding(web?.clientID, to: try reader.required("audiences"))
    }

    private static func adding(
        _ clientID: Located<String>?, to audiences: NonEmpty<Located<String>>
    ) -> NonEmpty<Located<String>> {
        guard let clientID, !audiences.contains(where: { $0.value.hasSameBytes(as: clientID.value) }) else {
            return audiences
        }
        return NonEmpty(audiences.elements + [clientID]) ?? audiences
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

    /// The team and its key: `key_id` with `private_key`, or the last of `keys`.
    private static func developer(_ reader: inout ConfigurationReader) throws(ConfigurationError) -> Developer? {
        let team: DeveloperID? = reader.optional("team_id")
        let id: Located<DeveloperID>? = reader.optional("key_id")
        let pem = reader.optionalSecret("private_key")
        let file = DeveloperKey.file(in: &reader)
        let list = reader.blocks("keys", as: DeveloperKeyBlock.self)
        var keys = list.map { Located($0.value.key, at: $0.location) }
        switch (id, pem) {
        case (let id?, let pem?):
            if let node = reader.node("keys") {
                throw ConfigurationError(
                    .configConflictingKeys, at: node.location, "'keys' and 'key_id' are both given in \(reader.title)")
            }
            keys = [Located(try DeveloperKey(id: id.value.text, pem: pem, file: file), at: id.location)]
        case (let id?, nil):
            if reader.has("private_key") || reader.has("private_key_file") { throw .alreadyReported }
            throw ConfigurationError(
                .configMissingKey, at: id.location, "missing key 'private_key_file' beside 'key_id'")
        case (nil, let pem?):
            if reader.has("key_id") { throw .alreadyReported }
            throw ConfigurationError(.configMissingKey, at: pem.location, "missing key 'key_id' beside 'private_key'")
        case (nil, nil): break
        }
        guard let key = keys.last else {
            if let node = reader.node("team_id") {
                throw ConfigurationError(.configMissingKey, at: node.location, "team_id: is unused without a key")
            }
            return nil
        }
        guard let team else {
            if reader.has("team_id") { throw .alreadyReported }
            throw ConfigurationError(.configMissingKey, at: key.location, "missing key 'team_id' in \(reader.title)")
        }
        return Developer(team: team.text, key: key.value, location: key.location)
    }

    /// The move from another team to that of the key.
    private static func migration(
        _ reader: inout ConfigurationReader, of developer: Developer?
    ) throws(ConfigurationError) -> Migration? {
        let block = reader.block("migration", as: MigrationBlock.self)
        guard let location = reader.node("migration")?.location, let block else { return nil }
        guard let developer else {
            throw ConfigurationError(
                .configMissingKey, at: location,
                "migration: needs a key of the new team: team_id, key_id and private_key_file")
        }
        guard !block.fromTeam.value.text.hasSameBytes(as: developer.team) else {
            throw ConfigurationError(
                .configBadValue, at: block.fromTeam.location,
                "migration.from_team: is team_id, but must be the team that the app belonged to before")
        }
        return Migration(fromTeam: block.fromTeam.value.text, end: block.until.end, location: location)
    }

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
                "The client ids (bundle ids and Services IDs) whose tokens are accepted; a token's `aud` must be one."),
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
            .optional(
                "timeout", .duration, default: "5s",
                "The timeout of a call to Apple; keys are fetched with `jwks.fetch_timeout`."),
            .optional(
                "max_age", .duration, default: "24h", "How long after its `iat` a token is accepted as a bearer token."),
            .optional(
                "nonce", .choice(NoncePolicy.allCases.map(\.rawValue)), default: "optional",
                "Whether a login needs a nonce; `required` accepts only those that the gateway issued."),
            .optional(
                "nonce_form", NonceForms.shape, default: "raw",
                "The form in which apps put the nonce into their requests to Apple: one for all, or one for each of "
                    + "`audiences`."),
            .optional(
                "login_max_age", .duration, default: "10m", "How long after its `iat` a token is accepted for a login."),
            .optional("team_id", DeveloperID.shape, "The id of the developer team: ten capitals and digits."),
            .optional(
                "key_id", DeveloperID.shape, "The id of the key that signs calls to Apple: ten capitals and digits."),
            .optional(
                "keys", .list(.block(of: DeveloperKeyBlock.self), nonEmpty: true),
                "Several keys, for a change of keys; the last one is used."),
            .optional(
                "check", .block(of: CheckBlock.self),
                "How often refresh tokens are checked; absent: never. A user who withdrew the consent is signed out."),
            .optional(
                "notifications", .boolean, default: "false",
                "Whether Apple's notifications are accepted at `/auth/{provider}/notifications`."),
            .optional(
                "web", .block(of: WebBlock.self),
                "Sign-in by redirect for browsers; absent: none."),
            .optional(
                "migration", .block(of: MigrationBlock.self),
                "The team that the app belonged to before it moved to `team_id`; absent: it did not move."),
        ]).withSecret("private_key", required: false, "The P-256 private key of `key_id`, as PEM.")
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
        for audience in audiences {
            guard let reason = Self.strangeness(of: audience.value) else { continue }
            diagnostics.warning(
                .configBadValue, at: audience.location, "audiences: no token has '\(audience.value)': \(reason)")
        }
        nonceForms.validate(audiences, into: &diagnostics)
    }

    /// Why no token can be for an audience; `nil` if one can.
    private static func strangeness(of audience: String) -> String? {
        let isNumber = !audience.isEmpty && audience.utf8.allSatisfy { (0x30...0x39).contains($0) }
        if isNumber { return "it is the number of an app in the store, not its bundle id" }
        let team = audience.utf8.prefix { $0 != UInt8(ascii: ".") }
        let isTeam =
            team.count == 10 && team.count < audience.utf8.count
            && team.allSatisfy { (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) }
        return isTeam ? "it begins with the id of a team, which bundle ids in tokens do not have" : nil
    }
}
