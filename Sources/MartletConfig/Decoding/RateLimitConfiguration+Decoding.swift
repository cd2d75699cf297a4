extension RateLimitConfiguration {
    private static let maximumBurst = 1_000_000

    /// The keys of one entry of `rate_limits:`; its name is the entry's key.
    struct Block: ConfigurationDecodable {
        let keys: [Key]
        let rate: RequestRate
        let burst: Int
        let isShared: Bool
        let onStoreError: StoreErrorPolicy

        static var grammar: ConfigurationGrammar? {
            let name = ConfigurationGrammar.Shape.pattern("^(subject|provider|address|route|host|header:.+)$")
            return .init([
                .required(
                    "key", .either([name, .list(name, nonEmpty: true)]),
                    "What is counted by: `subject`, `provider`, `address` (IPv6 by /64), `route`, `host`, `header:<name>`; a list counts by all of them together."
                ),
                .required("rate", RequestRate.shape, "Requests per second, minute or hour: `100/s`."),
                .optional(
                    "burst", .integer(1...RateLimitConfiguration.maximumBurst),
                    "How many requests may come at a time; the number of `rate` if absent."),
                .optional(
                    "shared", .boolean, default: "false",
                    "Whether it counts over all instances, in the store; not with `memory:`."),
                .optional(
                    "on_store_error", .choice(StoreErrorPolicy.allCases.map(\.rawValue)), default: "local",
                    "While the store does not respond: each process counts for itself, or no request passes, or all do. Only with `shared`."
                ),
            ])
        }

        init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
            isShared = reader.optional("shared", default: false)
            let policy = reader.optional("on_store_error", as: Located<StoreErrorPolicy>.self)
            onStoreError = policy?.value ?? .local
            if let policy, !isShared {
                reader.error(
                    .configMissingKey, at: policy.location,
                    "on_store_error: needs 'shared: true', without which \(reader.title) does not use the store")
            }
            let burst: Int? = reader.optional("burst", in: 1...RateLimitConfiguration.maximumBurst)
            let keys = reader.expected("key", as: KeyList.self)
            let rate = reader.expected("rate", as: RequestRate.self)
            guard let keys, let rate else { throw .alreadyReported }
            (self.keys, self.rate) = (keys.keys, rate)
            self.burst = burst ?? rate.count
        }
    }

    /// One key, or a list of different ones.
    private struct KeyList: ConfigurationValue {
        let keys: [Key]

        init(decoding node: ConfigurationNode) throws(ConfigurationError) {
            guard node.elements != nil else {
                keys = [try Key(decoding: node)]
                return
            }
            let list = try NonEmpty<Located<Key>>(decoding: node)
            var known: Set<Key> = []
            for key in list where !known.insert(key.value).inserted {
                throw ConfigurationError(
                    .configDuplicateName, at: key.location, "\(quoted(key.value.text)) is listed twice")
            }
            keys = list.map(\.value)
        }
    }

    /// Reads `rate_limits:`.
    static func readAll(_ reader: inout ConfigurationReader) -> [RateLimitConfiguration] {
        for entry in reader.node("rate_limits")?.entries ?? [] { reader.checkName(entry.key) }
        return reader.namedBlocks("rate_limits", noun: "rate limit", as: Block.self).map { name, block in
            RateLimitConfiguration(
                name: name, keys: block.keys, rate: block.rate, burst: block.burst, isShared: block.isShared,
                onStoreError: block.onStoreError)
        }
    }
}

extension RateLimitConfiguration.StoreErrorPolicy: ConfigurationValue {}

extension RateLimitConfiguration.Key: ConfigurationValue {
    private static let names = ["subject", "provider", "address", "route", "host"]

    /// A name, or `header:<name>`.
    package init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let text = try node.text()
        switch text {
        case "subject": self = .subject
        case "provider": self = .provider
        case "address": self = .address
        case "route": self = .route
        case "host": self = .host
        default:
            guard text.hasPrefix("header:") else {
                let hint = Suggestion.phrase(for: text, among: Self.names)
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
}

extension RouteLimitsConfiguration {
    /// The state of a decision about all of them has a fixed size.
    package static let maximumRates = 8

    /// The keys of `limits:` that it is read from.
    static var keys: [ConfigurationGrammar.Key] {
        [
            .optional(
                "rate", .list(.text, nonEmpty: true), "The rate limits of its requests: names in `rate_limits`."),
            .optional(
                "announce", .boolean, default: "false",
                "Whether every response has `RateLimit-Policy` and `RateLimit`, not only that of a limited request."),
            .optional(
                "concurrency", .integer(1...1_000_000),
                "Requests that may be under way at a time, over all event loops; unlimited if absent."),
        ]
    }

    /// Reads its keys of `limits:`.
    init(_ reader: inout ConfigurationReader) {
        rates = reader.optional("rate", as: NonEmpty<Located<String>>.self)?.elements ?? []
        concurrency = reader.optional("concurrency", in: 1...1_000_000)
        let announce = reader.optional("announce", as: Located<Bool>.self)
        announces = announce?.value ?? false
        if announces, !reader.has("rate"), let announce {
            reader.error(
                .configMissingKey, at: announce.location, "announce: needs rate, whose limits responses tell")
        }
        if rates.count > Self.maximumRates, let first = rates.dropFirst(Self.maximumRates).first {
            reader.error(
                .configTooLarge, at: first.location, "rate: a route has at most \(Self.maximumRates) rate limits")
        }
    }
}

extension GatewayConfiguration {
    /// The same for the limits of logins, whose callers are unknown.
    private func checkLoginLimits(
        _ names: [String], _ needingCaller: Set<String>, _ reader: inout ConfigurationReader
    ) {
        var seen: Set<String> = []
        for name in sessions.loginLimits {
            let text = quoted(name.value)
            if !names.contains(name.value) {
                reader.error(
                    .configUnknownLimit, at: name.location,
                    "sessions.limits.login names rate limit \(text), which is not defined"
                        + Suggestion.phrase(for: name.value, among: names))
            } else if !seen.insert(name.value).inserted {
                reader.error(
                    .configDuplicateName, at: name.location, "sessions.limits.login names rate limit \(text) twice")
            } else if needingCaller.contains(name.value) {
                reader.error(
                    .configBadValue, at: name.location,
                    "sessions.limits.login is decided before the credential is read, but rate limit \(text) counts by the caller"
                )
            }
        }
    }

    /// Records an error for each rate limit of a route that is not defined or can never decide, and a warning for each
    /// that no route uses.
    func checkRateLimits(_ reader: inout ConfigurationReader) {
        let defined = reader.node("rate_limits")?.entries?.map(\.key) ?? []
        let names = defined.map(\.value)
        let needingCaller = Set(server.rateLimits.filter(\.needsCaller).map(\.name.value))
        var used: Set<String> = []
        if store.url.value == "memory:" {
            for limit in server.rateLimits where limit.isShared {
                reader.error(
                    .configMissingKey, at: limit.name.location,
                    "rate limit \(quoted(limit.name.value)) is shared, which needs a store that instances share: store.url"
                )
            }
        }
        checkLoginLimits(names, needingCaller, &reader)
        used.formUnion(sessions.loginLimits.map(\.value))
        for route in routes {
            var seen: Set<String> = []
            for name in route.limits.rates {
                used.insert(name.value)
                let title = "route \(quoted(route.name.value))"
                if !names.contains(name.value) {
                    reader.error(
                        .configUnknownLimit, at: name.location,
                        "\(title) names rate limit \(quoted(name.value)), which is not defined"
                            + Suggestion.phrase(for: name.value, among: names))
                } else if !seen.insert(name.value).inserted {
                    reader.error(
                        .configDuplicateName, at: name.location, "\(title) names rate limit \(quoted(name.value)) twice"
                    )
                } else if case .none = route.authentication, needingCaller.contains(name.value) {
                    reader.error(
                        .configBadValue, at: name.location,
                        "\(title) has 'auth: none', but rate limit \(quoted(name.value)) counts by the caller")
                }
            }
        }
        guard !reader.diagnostics.hasErrors else { return }
        for name in defined where !used.contains(name.value) {
            reader.diagnostics.warning(
                .configUnused, at: name.location, "no route uses rate limit \(quoted(name.value)), and no login")
        }
    }
}
