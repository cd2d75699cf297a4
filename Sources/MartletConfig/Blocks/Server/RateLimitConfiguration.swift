/// One entry of `rate_limits:`.
@frozen package struct RateLimitConfiguration: KeyedBlock {
    /// What a limit counts by.
    @frozen package enum Key: Sendable, Hashable {
        case subject
        case provider
        /// An IPv4 address, or the /64 of an IPv6 address.
        case address
        case route
        case host
        /// The first field of this name (lower case).
        case header(String)

        /// Whether it is known only once the caller is authenticated.
        package var needsCaller: Bool {
            switch self {
            case .subject, .provider: true
            case .address, .route, .host, .header: false
            }
        }

        /// The key as it is written in the file.
        package var text: String {
            switch self {
            case .subject: "subject"
            case .provider: "provider"
            case .address: "address"
            case .route: "route"
            case .host: "host"
            case .header(let name): "header:\(name)"
            }
        }
    }

    /// What a shared limit does while the store does not respond.
    @frozen package enum StoreErrorPolicy: String, ConfigurationChoice {
        /// Each process counts for itself.
        case local
        /// No request passes.
        case deny
        /// Every request passes.
        case allow
    }

    package var name = Located<String>.unread
    /// All of them together are what it counts by; at least one.
    package var keys: [Key] = []
    package var rate = RequestRate(count: 1)
    package var burst = 1
    package var isShared = false
    package var onStoreError = StoreErrorPolicy.local

    /// Whether it is decided behind the authenticator.
    package var needsCaller: Bool { keys.contains(where: \.needsCaller) }

    static let keys: [ConfigurationKey<Self>] = [
        .required(
            "key", \.keys, as: KeyList.self,
            "What is counted by: `subject`, `provider`, `address` (IPv6 by /64), `route`, `host`, `header:<name>`; a list counts by all of them together."
        ),
        .required("rate", \.rate, "Requests per second, minute or hour: `100/s`."),
        .key(
            "burst", \.ownBurst, in: 1...1_000_000,
            "How many requests may come at a time; the number of `rate` if absent."),
        .key("shared", \.isShared, "Whether it counts over all instances, in the store; not with `memory:`."),
        .key(
            "on_store_error", \.onStoreError,
            "While the store does not respond: each process counts for itself, or no request passes, or all do. Only with `shared`."
        ),
        .check(always: true) { limit, reader in
            guard reader.given("on_store_error") != nil, !limit.isShared else { return }
            reader.reject(
                "on_store_error", .configMissingKey,
                "needs 'shared: true', without which \(reader.title) does not use the store")
        },
        .check { limit, reader in if !reader.has("burst") { limit.burst = limit.rate.count } },
    ]

    private var ownBurst: Int? {
        get { nil }
        set { burst = newValue ?? burst }
    }

    /// One key, or a list of different ones.
    private struct KeyList: Spelling {
        private static let name = ConfigurationGrammar.Shape.pattern(
            "^(subject|provider|address|route|host|header:.+)$")
        static let shape = ConfigurationGrammar.Shape.either([name, .list(name, nonEmpty: true)])
        let content: [Key]

        init(decoding node: ConfigurationNode) throws(ConfigurationError) {
            guard node.elements != nil else {
                content = [try Key(decoding: node)]
                return
            }
            let list = try NonEmpty<Located<Key>>(decoding: node)
            var known: Set<Key> = []
            for key in list where !known.insert(key.value).inserted {
                throw ConfigurationError(
                    .configDuplicateName, at: key.location, "\(quoted(key.value.text)) is listed twice")
            }
            content = list.map(\.value)
        }
    }
}

extension RateLimitConfiguration.Key: ConfigurationValue {
    private static let plain: [Self] = [.subject, .provider, .address, .route, .host]

    /// A name, or `header:<name>`.
    package init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let text = try node.text()
        if let key = Self.plain.first(where: { $0.text == text }) {
            self = key
            return
        }
        guard text.hasPrefix("header:") else {
            let hint = Suggestion.phrase(for: text, among: Self.plain.map(\.text))
            throw node.error(
                .configBadValue,
                "must be subject, provider, address, route, host or header:<name>, not \(quoted(text))\(hint)")
        }
        let name = String(text.dropFirst(7))
        guard FieldNameSyntax.isValid(name) else {
            throw node.error(.configBadHeader, "\(quoted(name)) is not a header name")
        }
        self = .header(name.lowercased())
    }
}
