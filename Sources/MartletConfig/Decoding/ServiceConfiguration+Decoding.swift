package import MartletCore

extension AdminConfiguration: KeyedBlock {
    package init() { self.init(at: .none) }

    init(at location: SourceLocation) {
        self.init(address: Located(.ip(host: "127.0.0.1", port: 9901), at: location))
    }

    static let keys: [ConfigurationKey<Self>] = [
        .key("address", \.address, "The address of `/livez`, `/readyz`, `/healthz`, `/metrics` and the dashboard."),
        .key(
            "socket", \.socket,
            "A Unix socket beside the address, `unix:/run/martlet/admin.sock`, that only the gateway's user and group may open: over it changes need no credential."
        ),
        .key(
            "hosts", \.hosts, as: [HostPattern].self,
            "Accepted names in `Host`, besides `localhost` and the listener's address; `*.example.com` is its subdomains."
        ),
        .key(
            "metrics", \.metrics,
            "Whether `/metrics` requires the token from other machines (`token`) or not (`open`)."),
        .block("tls", \.tls, "TLS and its certificates; clear text if absent."),
        .secret(
            "token", \.token,
            "Authorizes changes, and reading from other machines, as `Authorization: Bearer`; fewer than 32 bytes are a warning."
        ),
        .check { $0.check(&$1) },
    ]

    private static let minimumTokenBytes = 32

    private func check(_ reader: inout ConfigurationReader) {
        if let socket {
            guard case .unix = socket.value else {
                return reader.reject(
                    "socket", .configBadAddress, "must be a Unix socket, such as unix:admin.sock")
            }
        }
        if let token { checkToken(token.value, reader.has("token_file") ? "token_file" : "token", &reader) }
        if let tls, tls.clientAuthentication == .required {
            reader.diagnostics.warning(
                .configAdminUnreachable, at: reader.node("tls")?["client_auth"]?.location ?? address.location,
                "client_auth: the commands of martlet and most probes have no client certificate, and cannot connect; "
                    + "with optional, changes require one or the token all the same")
        }
        guard !address.value.isLocal else { return }
        let isAuthenticated = reader.has("token") || reader.has("token_file") || tls?.clientAuthorityFile != nil
        if !isAuthenticated {
            reader.diagnostics.warning(
                .configInsecure, at: address.location,
                "the admin listener is reachable from other machines, which without token_file may only use /livez and "
                    + (metrics == .open ? "/readyz, and read /metrics" : "/readyz; for Prometheus: metrics: open"))
        } else if !reader.has("tls") {
            reader.diagnostics.warning(
                .configInsecure, at: address.location,
                "the admin listener is reachable from other machines without tls, so its token can be read on the way")
        }
    }

    private func checkToken(_ token: Secret, _ key: String, _ reader: inout ConfigurationReader) {
        let isHeaderText = token.withBytes { bytes in bytes.allSatisfy { (0x21...0x7E).contains($0) } }
        if !isHeaderText {
            reader.reject(key, .configBadValue, "must be visible ASCII characters, without spaces")
        } else if token.count < Self.minimumTokenBytes {
            reader.warn(
                key, .configInsecure, "shorter than \(Self.minimumTokenBytes) bytes, which may be guessed")
        }
    }

    /// The configuration without an `admin:` block.
    static func implied(at location: SourceLocation) -> AdminConfiguration {
        var standard = AdminConfiguration(at: location)
        standard.isImplied = true
        return standard
    }
}

extension LogLevel: ConfigurationValue, Spelling {
    static var shape: ConfigurationGrammar.Shape { .choice(allCases.map(\.name)) }
    static func text(of level: LogLevel) -> String? { level.name }

    /// `debug`, `info`, `warning` or `error`.
    package init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let text = try node.text()
        guard let level = LogLevel.allCases.first(where: { $0.name == text }) else {
            throw node.error(.configBadValue, notOneOf(LogLevel.allCases.map(\.name), text))
        }
        self = level
    }
}

extension LogConfiguration: KeyedBlock {
    static let keys: [ConfigurationKey<Self>] = [
        .key("level", \.level, "The minimum level that is logged."),
        .key("format", \.format, "`auto` is text on a terminal and JSON lines otherwise."),
        .key("subject", \.subject, "How access records name callers: `full`, `hash` (with `subject_key`), or `off`."),
        .block("access", \.access, default: nil, "Which access lines there are, what they have, and where they go."),
        .secret("subject_key", \.locatedKey, "The key of the hashes of `subject: hash`, at least 16 bytes."),
        .check { log, reader in
            if let key = log.subjectKey, key.count < minimumKeyBytes {
                let node = reader.node("subject_key") ?? reader.node("subject_key_file")
                reader.error(
                    .configBadValue, at: node?.location ?? reader.location,
                    "subject_key: must have at least \(minimumKeyBytes) bytes")
            }
            guard log.subject == .hash, !reader.has("subject_key"), !reader.has("subject_key_file") else { return }
            reader.error(
                .configMissingKey, at: reader.node("subject")?.location ?? reader.location,
                "subject: 'hash' requires 'subject_key_file' or 'subject_key'")
        },
    ]

    private static let minimumKeyBytes = 16

    private var locatedKey: Located<Secret>? {
        get { nil }
        set { subjectKey = newValue?.value }
    }
}

extension StoreConfiguration: KeyedBlock {
    package init() { self.init(at: .none) }

    init(at location: SourceLocation) { self.init(url: Located("memory:", at: location)) }

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

extension StoreTLS: KeyedBlock {
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

extension StoreSealConfiguration: KeyedBlock {
    private static let keyLength = 32

    package init() { self.init(keys: []) }

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

extension StoreTimeouts: KeyedBlock {
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

extension JWKSConfiguration: KeyedBlock {
    static let keys: [ConfigurationKey<Self>] = [
        .key("ttl", \.ttl, in: Duration.positive, "Age at which an issuer's keys are fetched again."),
        .key("max_stale", \.maximumStale, "How long keys stay in use while fetching fails."),
        .key(
            "unknown_kid_cooldown", \.unknownKeyCooldown, in: Duration.positive,
            "The minimum interval between fetches for unknown key ids."),
        .key(
            "negative_ttl", \.negativeTTL, in: Duration.positive,
            "How long a key id that does not exist is cached as unknown."),
        .key("fetch_timeout", \.fetchTimeout, in: Duration.positive, "The timeout of one fetch."),
    ]
}
