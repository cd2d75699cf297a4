package import MartletCore

extension AdminConfiguration: ConfigurationDecodable {
    package static var grammar: ConfigurationGrammar? {
        .init([
            .optional(
                "address", .text, default: "127.0.0.1:9901",
                "The address of `/livez`, `/readyz`, `/healthz`, `/metrics` and the dashboard."),
            .optional(
                "socket", .text,
                "A Unix socket beside the address, `unix:/run/martlet/admin.sock`, that only the gateway's user and group may open: over it changes need no credential."
            ),
            .optional(
                "hosts", .list(.text, nonEmpty: false), default: "[]",
                "Accepted names in `Host`, besides `localhost` and the listener's address; `*.example.com` is its subdomains."
            ),
            .optional(
                "metrics", .choice(Metrics.allCases.map(\.rawValue)), default: "token",
                "Whether `/metrics` requires the token from other machines (`token`) or not (`open`)."),
            .optional("tls", .block(of: ListenerTLS.self), "TLS and its certificates; clear text if absent."),
        ])
        .withSecret(
            "token", required: false,
            "Authorizes changes, and reading from other machines, as `Authorization: Bearer`; fewer than 32 bytes are a warning."
        )
    }

    private static let minimumTokenBytes = 32

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        address = reader.optional("address", default: Self.standard(at: reader.location).address)
        socket = Self.socket(&reader)
        hosts = reader.optional("hosts", default: [HostPattern]()).map(\.text)
        token = reader.optionalSecret("token")
        metrics = reader.optional("metrics", default: metrics)
        tls = reader.block("tls")
        if let token { checkToken(token, reader.node("token_file") == nil ? "token" : "token_file", &reader) }
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

    private static func socket(_ reader: inout ConfigurationReader) -> Located<SocketAddress>? {
        let found: Located<SocketAddress>? = reader.optional("socket")
        guard let socket = found else { return nil }
        if case .unix = socket.value { return socket }
        reader.error(.configBadAddress, at: socket.location, "socket: must be a Unix socket, such as unix:admin.sock")
        return nil
    }

    private func checkToken(_ token: Located<Secret>, _ key: String, _ reader: inout ConfigurationReader) {
        let isHeaderText = token.value.withBytes { bytes in bytes.allSatisfy { (0x21...0x7E).contains($0) } }
        guard isHeaderText else {
            return reader.error(
                .configBadValue, at: token.location, "\(key): must be visible ASCII characters, without spaces")
        }
        guard token.value.count < Self.minimumTokenBytes else { return }
        reader.diagnostics.warning(
            .configInsecure, at: token.location,
            "\(key): shorter than \(Self.minimumTokenBytes) bytes, which may be guessed")
    }

    /// The configuration without an `admin:` block.
    static func standard(at location: SourceLocation) -> AdminConfiguration {
        AdminConfiguration(address: Located(.ip(host: "127.0.0.1", port: 9901), at: location), isImplied: true)
    }
}

extension AdminConfiguration.Metrics: ConfigurationValue {}
extension LogConfiguration.Format: ConfigurationValue {}
extension LogConfiguration.SubjectForm: ConfigurationValue {}

extension LogLevel: ConfigurationValue {
    /// `debug`, `info`, `warning` or `error`.
    package init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let text = try node.text()
        guard let level = LogLevel.allCases.first(where: { $0.name == text }) else {
            throw node.error(.configBadValue, notOneOf(LogLevel.allCases.map(\.name), text))
        }
        self = level
    }
}

extension LogConfiguration: ConfigurationDecodable {
    package static var grammar: ConfigurationGrammar? {
        .init([
            .optional(
                "level", .choice(LogLevel.allCases.map(\.name)), default: "info", "The minimum level that is logged."),
            .optional(
                "format", .choice(Format.allCases.map(\.rawValue)), default: "auto",
                "`auto` is text on a terminal and JSON lines otherwise."),
            .optional(
                "subject", .choice(SubjectForm.allCases.map(\.rawValue)), default: "full",
                "How access records name callers: `full`, `hash` (with `subject_key`), or `off`."),
            .optional(
                "access", .block(of: AccessLogConfiguration.self),
                "Which access lines there are, what they have, and where they go."),
        ])
        .withSecret(
            "subject_key", required: false, "The key of the hashes of `subject: hash`, at least 16 bytes.")
    }

    private static let minimumKeyBytes = 16

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        self.init()
        level = reader.optional("level", default: level)
        format = reader.optional("format", default: format)
        subject = reader.optional("subject", default: subject)
        access = reader.block("access") ?? access
        let key = reader.optionalSecret("subject_key")
        subjectKey = key?.value
        if let key, key.value.count < Self.minimumKeyBytes {
            reader.error(
                .configBadValue, at: key.location, "subject_key: must have at least \(Self.minimumKeyBytes) bytes")
        }
        guard subject == .hash, key == nil, !reader.has("subject_key"), !reader.has("subject_key_file") else { return }
        reader.error(
            .configMissingKey, at: reader.node("subject")?.location ?? reader.location,
            "subject: 'hash' requires 'subject_key_file' or 'subject_key'")
    }
}

extension StoreConfiguration.OnError: ConfigurationValue {}
extension StoreConfiguration.Replicas: ConfigurationValue {}

extension StoreConfiguration: ConfigurationDecodable {
    package static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar()
            .withSecret(
                "url", required: false,
                "`memory:` (the default), `redis://`, `rediss://`, `redis+unix://`, `redis+sentinel://` or `redis+cluster://`."
            )
            .adding([
                .optional("key_prefix", .text, default: "martlet:", "The prefix of every key in the store."),
                .optional(
                    "on_error", .choice(OnError.allCases.map(\.rawValue)), default: "cached",
                    "While the store is unavailable: `cached` keeps using cached data (sessions: for `sessions.cache_ttl`), `deny` rejects."
                ),
                .optional("username", .text, "The Redis user, with `password_file`; instead of one in the URL."),
                .optional(
                    "sentinel", .block(of: Sentinel.self), "The user of the sentinels, which have users of their own."),
                .optional("tls", .block(of: StoreTLS.self), "TLS to every Redis server and sentinel."),
                .optional(
                    "pool", .integer(2...64), default: "4",
                    "Connections to each Redis node; one is for writes that wait for replicas."),
                .optional(
                    "timeouts", .block(of: StoreTimeouts.self), default: "{}", "Timeouts of connections and commands."),
                .optional(
                    "seal", .block(of: StoreSealConfiguration.self),
                    "Authenticates what instances believe when they read it from the store."),
                .optional(
                    "wait_replicas", .integer(0...8), default: "1",
                    "Replicas that a refresh or a revocation waits for, up to 100 ms; `0` for none."),
                .optional(
                    "replicas", .choice(StoreConfiguration.Replicas.allCases.map(\.rawValue)), default: "never",
                    "What may be read from replicas: `keys` for issuers' keys, so that they can be read while a master is replaced."
                ),
            ])
            .withSecret("password", required: false, "The password of the Redis user.")
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        url = Self.readURL(&reader)
        keyPrefix = reader.optional("key_prefix", default: "martlet:")
        if keyPrefix.utf8.count > 64 || !keyPrefix.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) {
            let location = reader.node("key_prefix")?.location ?? reader.location
            reader.error(.configBadValue, at: location, "key_prefix: must be at most 64 printable ASCII characters")
        }
        onError = reader.optional("on_error", default: .cached)
        (username, password) = reader.credentials()
        passwordFile = reader.optional("password_file", as: FilePath.self)
        sentinel = reader.block("sentinel") ?? sentinel
        if let node = reader.node("tls") { tls = reader.block("tls").map { Located($0, at: node.location) } }
        let usual = pool
        pool = reader.optional("pool", default: usual, in: 2...64)
        if let node = reader.node("pool"), url.value == "memory:", pool != usual {
            reader.diagnostics.warning(
                .configConflictingKeys, at: node.location, "pool: the store memory: has no connections")
        }
        timeouts = reader.block("timeouts") ?? timeouts
        seal = reader.block("seal")
        waitReplicas = reader.optional("wait_replicas", default: waitReplicas, in: 0...8)
        replicas = reader.optional("replicas", default: replicas)
    }

    /// The configuration without a `store:` block.
    static func standard(at location: SourceLocation) -> StoreConfiguration {
        StoreConfiguration(url: Located("memory:", at: location))
    }

    /// Reads the URL and checks its scheme. Messages never show the URL, because it may contain a password.
    private static func readURL(_ reader: inout ConfigurationReader) -> Located<String> {
        guard let secret = reader.optionalSecret("url") else { return standard(at: reader.location).url }
        let text = secret.value.withBytes { String(decoding: $0, as: UTF8.self) }
        let scheme = String(text.prefix { $0 != ":" })
        switch scheme {
        case "memory" where text == "memory:": break
        case "redis", "rediss", "redis+unix", "redis+sentinel", "redis+cluster", "rediss+cluster":
            let isUsable = text.hasPrefix("\(scheme)://") && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
            if !isUsable || text.utf8.count <= scheme.utf8.count + 3 {
                reader.error(.configBadURL, at: secret.location, "url: must be \(scheme)://… without spaces")
            }
        default:
            reader.error(
                .configBadURL, at: secret.location,
                "url: must be memory:, redis://…, rediss://…, redis+unix://…, redis+sentinel://…, redis+cluster://… or rediss+cluster://…"
            )
        }
        return Located(text, at: secret.location)
    }
}

extension StoreConfiguration.Sentinel: ConfigurationDecodable {
    package static var grammar: ConfigurationGrammar? {
        .init([.optional("username", .text, "The user, with `password_file`.")])
            .withSecret("password", required: false, "Its password.")
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        let credentials = reader.credentials()
        (username, password) = (credentials.username?.value, credentials.password)
        passwordFile = reader.optional("password_file", as: FilePath.self)
    }
}

extension ConfigurationReader {
    /// `username`, which requires a password, and `password` or `password_file`.
    fileprivate mutating func credentials() -> (username: Located<String>?, password: Located<Secret>?) {
        let username = optional("username", as: Located<String>.self)
        let password = optionalSecret("password")
        if let username, password == nil, !has("password_file"), !has("password") {
            error(.configMissingKey, at: username.location, "username: requires 'password_file' or 'password'")
        }
        return (username, password)
    }
}

extension StoreTLS: ConfigurationDecodable {
    package static var grammar: ConfigurationGrammar? {
        .init([
            .optional("ca_file", .path, "The certificate authorities of the servers, as PEM; the system's if absent."),
            .optional("certificate_file", .path, "The client certificate, as PEM."),
            .optional("key_file", .path, "Its private key as PEM."),
            .optional(
                "server_name", .text,
                "The name in the certificate of every server; the host that each is reached by if absent."),
        ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        authorityFile = reader.file("ca_file")
        certificate = reader.certificatePair()
        serverName = reader.optional("server_name", as: ServerName.self)?.text
    }
}

extension StoreSealConfiguration.Mode: ConfigurationValue {}

extension StoreSealConfiguration: ConfigurationDecodable {
    private static let keyLength = 32

    package static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .optional("key_file", .path, "The key: 32 bytes in base64."),
            .optional(
                "key_files", .list(.path, nonEmpty: true),
                "Several keys, for a change of keys: the first one seals, all verify."),
            .optional(
                "mode", .choice(Mode.allCases.map(\.rawValue)), default: "enforce",
                "What does not verify: `enforce` takes it for absent, `observe` counts it and uses it."),
            .optional(
                "accept_unsealed_until", .text,
                "Until then, what has no seal is used, such as `2026-12-24T18:00:00Z`; to turn the seal on."),
        ])
        .withOneOf(["key_file", "key_files"])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
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
        keys = []
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
        if isListed, texts.isEmpty, reader.node("key_files")?.elements?.isEmpty == true {
            reader.error(
                .configBadValue, at: reader.node("key_files")?.location ?? reader.location,
                "key_files: must have at least one file")
        }
        mode = reader.optional("mode", default: mode)
        acceptsUnsealedUntil = reader.optional("accept_unsealed_until", as: UnixTime.self)
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

extension StoreTimeouts: ConfigurationDecodable {
    package static var grammar: ConfigurationGrammar? {
        .init([
            .optional("connect", .duration, default: "1s", "The timeout of a connection attempt, 50ms to 30s."),
            .optional("command", .duration, default: "500ms", "The timeout of a command, 10ms to 10s."),
            .optional(
                "shared_limit", .duration, default: "75ms",
                "How long a request waits for shared limits, 5ms to 2s; a slower store is unavailable for them."),
        ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        self.init()
        connect = reader.optional("connect", default: connect, in: .milliseconds(50) ... .seconds(30))
        command = reader.optional("command", default: command, in: .milliseconds(10) ... .seconds(10))
        sharedLimit = reader.optional("shared_limit", default: sharedLimit, in: .milliseconds(5) ... .seconds(2))
    }
}

extension JWKSConfiguration: ConfigurationDecodable {
    package static var grammar: ConfigurationGrammar? {
        .init([
            .optional("ttl", .duration, default: "1h", "Age at which an issuer's keys are fetched again."),
            .optional("max_stale", .duration, default: "24h", "How long keys stay in use while fetching fails."),
            .optional(
                "unknown_kid_cooldown", .duration, default: "60s",
                "The minimum interval between fetches for unknown key ids."),
            .optional(
                "negative_ttl", .duration, default: "60s",
                "How long a key id that does not exist is cached as unknown."),
            .optional("fetch_timeout", .duration, default: "3s", "The timeout of one fetch."),
        ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        self.init()
        ttl = reader.optional("ttl", default: ttl, in: Duration.positive)
        maximumStale = reader.optional("max_stale", default: maximumStale)
        unknownKeyCooldown = reader.optional("unknown_kid_cooldown", default: unknownKeyCooldown, in: Duration.positive)
        negativeTTL = reader.optional("negative_ttl", default: negativeTTL, in: Duration.positive)
        fetchTimeout = reader.optional("fetch_timeout", default: fetchTimeout, in: Duration.positive)
    }
}
