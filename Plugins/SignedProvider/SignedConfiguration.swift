public import MartletConfig
internal import MartletCore
internal import MartletCrypto
internal import MartletJSON
internal import MartletProvider

/// The block of a provider whose `kind` is `signed`.
public struct SignedConfiguration: ConfigurationDecodable {
    /// Whether signatures need a nonce.
    enum NonceRule: String, Sendable, CaseIterable, ConfigurationValue {
        case optional, required
    }

    let keys: [String: SigningKey]
    let policy: RequestSignaturePolicy

    public init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        let nonce = reader.optional("nonce", default: NonceRule.optional)
        let age: Duration = reader.optional("max_age", default: .seconds(60), in: .seconds(1) ... .seconds(3600))
        let covers = reader.optional("covers", default: Defaults.covers.map { Located($0, at: reader.location) })
        let blocks = reader.namedBlocks("keys", noun: "key", as: SigningKeyBlock.self)
        policy = try Self.policy(covers, maximumAge: age.wholeSeconds, requiresNonce: nonce == .required)
        guard !blocks.isEmpty || reader.diagnostics.hasErrors else {
            throw ConfigurationError(.configMissingKey, at: reader.location, "\(reader.title) needs keys, at least one")
        }
        var keys: [String: SigningKey] = [:]
        for (name, block) in blocks {
            guard (1...Defaults.nameBytes).contains(name.value.utf8.count) else {
                reader.error(.configBadValue, at: name.location, "keys: a name has 1 to \(Defaults.nameBytes) bytes")
                continue
            }
            keys[name.value] = SigningKey(
                key: block.key, subject: block.subject, claims: block.claims,
                requiresNonce: (block.nonce ?? nonce) == .required)
        }
        self.keys = keys
    }

    private static func policy(
        _ covers: [Located<String>], maximumAge: Int64, requiresNonce: Bool
    ) throws(ConfigurationError) -> RequestSignaturePolicy {
        for (index, component) in covers.enumerated() {
            let known = covers[..<index].contains { $0.value.hasSameBytes(as: component.value) }
            guard known else { continue }
            throw ConfigurationError(
                .configDuplicateName, at: component.location, "covers: '\(component.value)' is there twice")
        }
        do throws(RequestSignaturePolicyError) {
            return try RequestSignaturePolicy(
                covers: covers.map(\.value), maximumAge: maximumAge, requiresNonce: requiresNonce)
        } catch {
            let location = covers.first { $0.value.hasSameBytes(as: error.component) }?.location
            throw ConfigurationError(
                .configBadValue, at: location ?? SourceLocation(file: "", line: 0, column: 0),
                "covers: '\(error.component)': \(error.message)")
        }
    }

    private enum Defaults {
        static let covers = ["@method", "@authority", "@path", "@query"]
        /// As long as `keyid` of a signature may be.
        static let nameBytes = 256
    }

    public static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .required(
                "keys", .map(.block(of: SigningKeyBlock.self)),
                "The keys, by the `keyid` of signatures (1 to 256 bytes); at least one."),
            .optional(
                "covers", .list(.text, nonEmpty: false),
                default: "[\"@method\", \"@authority\", \"@path\", \"@query\"]",
                "What a signature covers at least; a body is always covered by `content-digest`."),
            .optional("max_age", .duration, default: "60s", "How long after its `created` a signature is accepted."),
            .optional(
                "nonce", .choice(NonceRule.allCases.map(\.rawValue)), default: "optional",
                "Whether signatures need a `nonce`; one that is there is accepted once."),
        ])
    }
}

/// A key, and who has it.
struct SigningKey: Sendable {
    let key: MessageSignatureKey
    let subject: String
    let claims: JSONObject
    let requiresNonce: Bool
}

/// An entry of `keys`.
struct SigningKeyBlock: ConfigurationDecodable {
    private static let maximumFileBytes = 64 * 1024

    let key: MessageSignatureKey
    let subject: String
    let claims: JSONObject
    let nonce: SignedConfiguration.NonceRule?

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        nonce = reader.optional("nonce", as: SignedConfiguration.NonceRule.self)
        claims = reader.optional("claims", as: ClaimMap.self)?.claims ?? [:]
        let secret = reader.optionalSecret("secret")
        let publicKey = reader.file("public_key_file", maximumBytes: Self.maximumFileBytes)
        let subject: Located<String> = try reader.required("subject")
        let algorithm: Located<AlgorithmName> = try reader.required("algorithm")
        guard (1...255).contains(subject.value.utf8.count),
            !subject.value.unicodeScalars.contains(where: { $0.properties.generalCategory == .control })
        else {
            throw ConfigurationError(
                .configBadValue, at: subject.location, "subject: must have 1 to 255 bytes without control characters")
        }
        self.subject = subject.value
        guard !reader.diagnostics.hasErrors else { throw .alreadyReported }
        key = try Self.key(algorithm, secret, publicKey, reader.title)
    }

    private static func key(
        _ algorithm: Located<AlgorithmName>, _ secret: Located<Secret>?, _ publicKey: Located<[UInt8]>?,
        _ title: String
    ) throws(ConfigurationError) -> MessageSignatureKey {
        let isSecret = algorithm.value == .hmacSHA256
        let wanted = isSecret ? "secret_file" : "public_key_file"
        let other = isSecret ? publicKey?.location : secret?.location
        if let other {
            throw ConfigurationError(
                .configConflictingKeys, at: other,
                "\(title): a key for \(algorithm.value.rawValue) is given by \(wanted) alone")
        }
        guard let location = secret?.location ?? publicKey?.location else {
            throw ConfigurationError(
                .configMissingKey, at: algorithm.location,
                "\(title): a key for \(algorithm.value.rawValue) needs \(wanted)")
        }
        do throws(CryptoError) {
            if let publicKey {
                return try MessageSignatureKey(pem: Secret(publicKey.value), for: algorithm.value.algorithm)
            }
            guard let bytes = secret?.value.withBytes({ Self.decode($0[...]) }) else {
                throw CryptoError("crypto.bad_key", "the secret is not base64")
            }
            return try MessageSignatureKey(secret: Secret(bytes))
        } catch {
            throw ConfigurationError(.configBadValue, at: location, "\(title): \(error.message)")
        }
    }

    /// Base64 with its padding or without.
    private static func decode(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        Base64.decode(text, padding: .required) ?? Base64.decode(text, padding: .absent)
    }

    static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .required("algorithm", .choice(AlgorithmName.allCases.map(\.rawValue)), "The only algorithm of the key."),
            .required("subject", .text, "Who has the key: upstreams see `<provider>:<subject>`."),
            .optional("public_key_file", .path, "The public key as PEM, for `ecdsa-p256-sha256` and `ed25519`."),
            .optional(
                "claims", .map(.either([.literal, .list(.literal, nonEmpty: false)])),
                "Claims of the caller, for rules and headers."),
            .optional(
                "nonce", .choice(SignedConfiguration.NonceRule.allCases.map(\.rawValue)),
                "Instead of the provider's `nonce`."),
        ]).withSecret("secret", required: false, "The secret for `hmac-sha256`: at least 32 bytes, in base64.")
    }
}

/// `algorithm` of a key, by the names of RFC 9421 §6.2.2.
enum AlgorithmName: String, Sendable, CaseIterable, ConfigurationValue {
    case hmacSHA256 = "hmac-sha256"
    case ecdsaP256SHA256 = "ecdsa-p256-sha256"
    case ed25519

    var algorithm: MessageSignatureAlgorithm {
        switch self {
        case .hmacSHA256: .hmacSHA256
        case .ecdsaP256SHA256: .ecdsaP256SHA256
        case .ed25519: .ed25519
        }
    }
}

/// `claims` of a key: texts, whole numbers, booleans, and lists of them.
struct ClaimMap: ConfigurationValue {
    let claims: JSONObject

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        guard let entries = node.entries else { throw node.error(.configWrongType, "must be a block of claims") }
        var claims: JSONObject = [:]
        for entry in entries { claims[entry.key.value] = try Self.value(entry.value) }
        self.claims = claims
    }

    private static func value(_ node: ConfigurationNode) throws(ConfigurationError) -> JSONValue {
        guard let elements = node.elements else { return try literal(node) }
        var values: [JSONValue] = []
        for element in elements { values.append(try literal(element)) }
        return .array(values)
    }

    private static func literal(_ node: ConfigurationNode) throws(ConfigurationError) -> JSONValue {
        guard case .scalar(let scalar) = node.content, !node.isNull else {
            throw node.error(.configWrongType, "a claim must be a text, a number, a boolean or a list of them")
        }
        guard scalar.isPlain else { return .string(scalar.text) }
        if let number = Int64(scalar.text) { return .integer(number) }
        switch scalar.text {
        case "true": return .bool(true)
        case "false": return .bool(false)
        default: return .string(scalar.text)
        }
    }
}
