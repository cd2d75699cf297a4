extension RateLimitConfiguration: KeyedBlock {
    package init() {
        self.init(name: Located("", at: .none), keys: [], rate: RequestRate(count: 1), burst: 1)
    }

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

extension RouteLimitsConfiguration {
    /// The state of a decision about all of them has a fixed size.
    package static let maximumRates = 8

    /// The keys of `limits:` that set it.
    static let keys: [ConfigurationKey<RouteLimits>] = [
        .key(
            "rate", \.others.rates, as: NonEmpty<Located<String>>.self,
            "The rate limits of its requests: names in `rate_limits`."),
        .key(
            "announce", \.others.announces,
            "Whether every response has `RateLimit-Policy` and `RateLimit`, not only that of a limited request."),
        .key(
            "concurrency", \.others.concurrency, in: 1...1_000_000,
            "Requests that may be under way at a time, over all event loops; unlimited if absent."),
        .check { limits, reader in
            if limits.others.announces, !reader.has("rate") {
                reader.reject("announce", .configMissingKey, "needs rate, whose limits responses tell")
            }
            guard let first = limits.others.rates.dropFirst(maximumRates).first else { return }
            reader.error(.configTooLarge, at: first.location, "rate: a route has at most \(maximumRates) rate limits")
        },
    ]
}

extension GatewayConfiguration {
    /// Records an error for each rate limit of a route or of logins that is not defined or can never decide, and a
    /// warning for each that none of them uses.
    func checkRateLimits(_ reader: inout ConfigurationReader) {
        if store.url.value == "memory:" {
            for limit in server.rateLimits where limit.isShared {
                reader.error(
                    .configMissingKey, at: limit.name.location,
                    "rate limit \(quoted(limit.name.value)) is shared, which needs a store that instances share: store.url"
                )
            }
        }
        let defined = reader.node("rate_limits")?.entries?.map(\.key) ?? []
        let names = defined.map(\.value)
        // The callers of logins are unknown.
        check(
            sessions.loginLimits, of: "sessions.limits.login", among: names,
            withoutCaller: "is decided before the credential is read", &reader)
        var used = Set(sessions.loginLimits.map(\.value))
        for route in routes {
            used.formUnion(route.limits.rates.map(\.value))
            var isPublic = false
            if case .none = route.authentication { isPublic = true }
            check(
                route.limits.rates, of: "route \(quoted(route.name.value))", among: names,
                withoutCaller: isPublic ? "has 'auth: none'" : nil, &reader)
        }
        guard !reader.diagnostics.hasErrors else { return }
        for name in defined where !used.contains(name.value) {
            reader.diagnostics.warning(
                .configUnused, at: name.location, "no route uses rate limit \(quoted(name.value)), and no login")
        }
    }

    /// - Parameter reason: why there is no caller to count by; `nil` if there is one.
    private func check(
        _ limits: [Located<String>], of title: String, among names: [String], withoutCaller reason: String?,
        _ reader: inout ConfigurationReader
    ) {
        var seen: Set<String> = []
        for name in limits {
            let text = quoted(name.value)
            if !names.contains(name.value) {
                reader.error(
                    .configUnknownLimit, at: name.location,
                    "\(title) names rate limit \(text), which is not defined"
                        + Suggestion.phrase(for: name.value, among: names))
            } else if !seen.insert(name.value).inserted {
                reader.error(.configDuplicateName, at: name.location, "\(title) names rate limit \(text) twice")
            } else if let reason, server.rateLimits.contains(where: { $0.name.value == name.value && $0.needsCaller }) {
                reader.error(
                    .configBadValue, at: name.location,
                    "\(title) \(reason), but rate limit \(text) counts by the caller")
            }
        }
    }
}
