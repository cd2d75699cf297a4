package import MartletCore

/// `store:`.
@frozen package struct StoreConfiguration: KeyedBlock {
    /// The behavior while the store is unavailable.
    @frozen package enum OnError: String, ConfigurationChoice { case cached, deny }

    /// What may be read from replicas.
    @frozen package enum Replicas: String, ConfigurationChoice { case never, keys }

    /// `store.sentinel:` — the credentials of the sentinels.
    @frozen package struct Sentinel: Sendable {
        package var username: String?
        package var password: Located<Secret>?
        package var passwordFile: FilePath?
    }

    /// `memory:`, `redis://…`, `rediss+cluster://…` and the like, as text; MartletRedis parses it.
    package var url: Located<String>
    package var username: Located<String>?
    package var password: Located<Secret>?
    /// The file of the password, which is read again before each connection attempt.
    package var passwordFile: FilePath?
    package var sentinel = Sentinel()
    package var tls: Located<StoreTLS>?
    package var pool = 4
    package var timeouts = StoreTimeouts()
    /// `nil` if what is stored is not authenticated.
    package var seal: StoreSealConfiguration?
    package var waitReplicas = 1
    package var replicas = Replicas.never
    package var keyPrefix = "martlet:"
    package var onError = OnError.cached

    init() { self.init(at: .none) }

    init(at location: SourceLocation) { url = Located("memory:", at: location) }

    static let keys: [ConfigurationKey<Self>] = [
        .secret(
            "url", \.secretURL,
            "`memory:` (the default), `redis://`, `rediss://`, `redis+unix://`, `redis+sentinel://` or `redis+cluster://`."
        ),
        .key(
            "key_prefix", \.keyPrefix,
            where: TextRule(
                .configBadValue, { $0.utf8.count <= 64 && $0.utf8.allSatisfy { (0x21...0x7E).contains($0) } },
                { _ in "must be at most 64 printable ASCII characters" }), "The prefix of every key in the store."),
        .key(
            "on_error", \.onError,
            "While the store is unavailable: `cached` keeps using cached data (sessions: for `sessions.cache_ttl`), `deny` rejects."
        ),
        .key("username", \.username, "The Redis user, with `password_file`; instead of one in the URL."),
        .block("sentinel", \.sentinel, default: nil, "The user of the sentinels, which have users of their own."),
        .block("tls", \.tls, "TLS to every Redis server and sentinel."),
        .key("pool", \.pool, in: 2...64, "Connections to each Redis node; one is for writes that wait for replicas."),
        .block("timeouts", \.timeouts, "Timeouts of connections and commands."),
        .block("seal", \.seal, "Authenticates what instances believe when they read it from the store."),
        .key(
            "wait_replicas", \.waitReplicas, in: 0...8,
            "Replicas that a refresh or a revocation waits for, up to 100 ms; `0` for none."),
        .key(
            "replicas", \.replicas,
            "What may be read from replicas: `keys` for issuers' keys, so that they can be read while a master is replaced."
        ),
        .secret("password", \.password, "The password of the Redis user."),
        .check { store, reader in
            store.checkURL(&reader)
            store.passwordFile = reader.passwordFile(of: store.password)
            guard store.url.value == "memory:", store.pool != Self().pool else { return }
            reader.warn("pool", .configConflictingKeys, "the store memory: has no connections")
        },
    ]

    private var secretURL: Located<Secret>? {
        get { nil }
        set {
            guard let newValue else { return }
            url = Located(newValue.value.withBytes { String(decoding: $0, as: UTF8.self) }, at: newValue.location)
        }
    }

    /// Checks the scheme of the URL. Messages never show it, because it may contain a password.
    private func checkURL(_ reader: inout ConfigurationReader) {
        let text = url.value
        let scheme = String(text.prefix { $0 != ":" })
        switch scheme {
        case "memory" where text == "memory:": break
        case "redis", "rediss", "redis+unix", "redis+sentinel", "redis+cluster", "rediss+cluster":
            let isUsable = text.hasPrefix("\(scheme)://") && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
            if !isUsable || text.utf8.count <= scheme.utf8.count + 3 {
                reader.error(.configBadURL, at: url.location, "url: must be \(scheme)://… without spaces")
            }
        default:
            reader.error(
                .configBadURL, at: url.location,
                "url: must be memory:, redis://…, rediss://…, redis+unix://…, redis+sentinel://…, redis+cluster://… or rediss+cluster://…"
            )
        }
    }
}

extension StoreConfiguration.Sentinel: KeyedBlock {
    static let keys: [ConfigurationKey<Self>] = [
        .key("username", \.username, "The user, with `password_file`."),
        .secret("password", \.password, "Its password."),
        .check { $0.passwordFile = $1.passwordFile(of: $0.password) },
    ]
}

extension ConfigurationReader {
    /// The file of a password, which is read again later. A user requires one; errors are recorded.
    fileprivate mutating func passwordFile(of password: Located<Secret>?) -> FilePath? {
        if given("username") != nil, password == nil, !has("password_file"), !has("password") {
            reject("username", .configMissingKey, "requires 'password_file' or 'password'")
        }
        return optional("password_file", as: FilePath.self)
    }
}

/// `store.tls:`.
@frozen package struct StoreTLS: KeyedBlock {
    package var authorityFile: Located<String>?
    package var certificate: CertificateFiles?
    package var serverName: String?

    static let keys: [ConfigurationKey<Self>] = [
        .key(
            "ca_file", \.authorityFile, as: Located<PathText>?.self,
            "The certificate authorities of the servers, as PEM; the system's if absent."),
        .certificate(\.certificate, "The client certificate, as PEM.", "Its private key as PEM."),
        .key(
            "server_name", \.serverName, as: ServerName?.self,
            "The name in the certificate of every server; the host that each is reached by if absent."),
    ]
}

/// `store.seal:` — how what is believed of the store is authenticated.
@frozen package struct StoreSealConfiguration: KeyedBlock {
    /// What happens to values that do not verify.
    @frozen package enum Mode: String, ConfigurationChoice { case enforce, observe }

    /// 32 bytes each; the first seals, all verify.
    package var keys: [Secret] = []
    package var mode = Mode.enforce
    package var acceptsUnsealedUntil: UnixTime?

    private static let keyLength = 32

    static let keys: [ConfigurationKey<Self>] = [
        .row(.optional("key_file", .path, "The key: 32 bytes in base64.")) { $0.readKeys(&$1) },
        .row(
            .optional(
                "key_files", .list(.path, nonEmpty: true),
                "Several keys, for a change of keys: the first one seals, all verify.")),
        .key("mode", \.mode, "What does not verify: `enforce` takes it for absent, `observe` counts it and uses it."),
        .key(
            "accept_unsealed_until", \.acceptsUnsealedUntil,
            "Until then, what has no seal is used, such as `2026-12-24T18:00:00Z`; to turn the seal on."),
    ]

    package static var grammar: ConfigurationGrammar? { table.withOneOf(["key_file", "key_files"]) }

    private mutating func readKeys(_ reader: inout ConfigurationReader) {
        let isListed = reader.has("key_files")
        if isListed, reader.has("key_file"), let node = reader.node("key_files") {
            reader.error(
                .configConflictingKeys, at: node.location,
                "'key_files' and 'key_file' are both given in \(reader.title)")
        }
        let single = reader.privateFile("key_file")
        let texts = reader.secretFiles("key_files", arePrivate: true)
        if !isListed, !reader.has("key_file") {
            reader.error(
                .configMissingKey, at: reader.location, "missing key 'key_file' or 'key_files' in \(reader.title)")
        }
        for text in single.map({ [$0] }) ?? texts {
            if let key = Self.key(text.value) {
                keys.append(key)
            } else {
                reader.error(
                    .configBadValue, at: text.location,
                    "\(single == nil ? "key_files" : "key_file"): must have 32 bytes in base64; martlet keygen store makes one"
                )
            }
        }
        if reader.node("key_files")?.elements?.isEmpty == true {
            reader.reject("key_files", .configBadValue, "must have at least one file")
        }
    }

    private static func key(_ text: Secret) -> Secret? {
        let bytes = text.withBytes { text in
            let digits = text.filter { $0 > 0x20 }
            return Base64.decode(digits[...], padding: .required) ?? Base64.decode(digits[...], padding: .absent)
                ?? Base64URL.decode(digits)
        }
        return bytes.flatMap { $0.count == keyLength ? Secret($0) : nil }
    }
}

/// `store.timeouts:`.
@frozen package struct StoreTimeouts: KeyedBlock {
    package var connect = Duration.seconds(1)
    package var command = Duration.milliseconds(500)
    package var sharedLimit = Duration.milliseconds(75)

    static let keys: [ConfigurationKey<Self>] = [
        .key(
            "connect", \.connect, in: .milliseconds(50) ... .seconds(30),
            "The timeout of a connection attempt, 50ms to 30s."),
        .key("command", \.command, in: .milliseconds(10) ... .seconds(10), "The timeout of a command, 10ms to 10s."),
        .key(
            "shared_limit", \.sharedLimit, in: .milliseconds(5) ... .seconds(2),
            "How long a request waits for shared limits, 5ms to 2s; a slower store is unavailable for them."),
    ]
}
