extension GatewayConfiguration {
    /// The keys of the whole file.
    package static var grammar: ConfigurationGrammar {
        .init([
            .required("version", .integer(1...1), "The grammar's version: 1."),
            .optional(
                "server", .block(of: ServerConfiguration.self), "Listeners, limits and deadlines of the client side."),
            .optional(
                "admin", .either([.choice(["off"]), .block(of: AdminConfiguration.self)]),
                "Health, metrics and the dashboard; `off` for none."),
            .optional("log", .block(of: LogConfiguration.self), "What is logged and how."),
            .optional(
                "store", .block(of: StoreConfiguration.self),
                "What instances share: sessions, issuers' keys, nonces, throttles."),
            .optional(
                "accounts", .block(of: AccountsConfiguration.self),
                "Where people's accounts are; without it a subject is `<provider>:<provider subject>`."),
            .optional(
                "sessions", .block(of: SessionsConfiguration.self), "How long sessions live, and where people sign in."),
            .optional("jwks", .block(of: JWKSConfiguration.self), "How issuers' keys are fetched and kept."),
            .optional(
                "assertion", .block(of: AssertionConfiguration.self),
                "A signed statement of who is calling, for upstreams; none without it."),
            .optional(
                "well_known", .block(of: WellKnownConfiguration.self), "What hosts of an app serve to its platform."),
            .optional("providers", .map(.provider), "Ways to prove identity, by name."),
            .optional(
                "plugins", .list(.unsupported, nonEmpty: false), default: "[]", "Only an empty list is supported yet."),
            .required("upstreams", .map(.block(of: UpstreamConfiguration.Block.self)), "Where requests go, by name."),
            .required(
                "routes", .list(.block(of: RouteConfiguration.self), nonEmpty: true),
                "Which requests go where; the first that matches wins."),
        ])
    }

    /// Reads every block, then looks across them; `nil` if one is missing or wrong, which is recorded.
    static func read(_ reader: inout ConfigurationReader, knownKinds: [String]) -> GatewayConfiguration? {
        checkVersion(&reader)
        if let plugins = reader.node("plugins"), plugins.elements?.isEmpty != true {
            if plugins.elements == nil {
                reader.diagnostics.add(plugins.mismatch("plugins ", mustBe: "a list"))
            } else {
                reader.unsupported("plugins", "loading plugins from libraries")
            }
        }
        let place = reader.location
        let server = reader.block("server") ?? ServerConfiguration.standard(at: place)
        let admin = readAdmin(&reader)
        let log = reader.block("log") ?? LogConfiguration()
        let store = reader.block("store") ?? StoreConfiguration.standard(at: place)
        let jwks = reader.block("jwks") ?? JWKSConfiguration()
        let accounts: AccountsConfiguration? = reader.block("accounts")
        let sessions = reader.block("sessions") ?? SessionsConfiguration()
        let assertion: AssertionConfiguration? = reader.block("assertion")
        let wellKnown = reader.block("well_known") ?? WellKnownConfiguration()
        let providers = readProviders(&reader, knownKinds: knownKinds)
        let upstreams = readUpstreams(&reader)
        let routes = readRoutes(&reader)
        var configuration = GatewayConfiguration(
            server: server, admin: admin, log: log, store: store, jwks: jwks, accounts: accounts,
            sessions: sessions, assertion: assertion, wellKnown: wellKnown, providers: providers,
            upstreams: upstreams, routes: routes)
        configuration.fillInProviders()
        configuration.checkListeners(&reader.diagnostics)
        configuration.checkProxyProtocol(&reader)
        configuration.warnOfNamelessClients(&reader.diagnostics)
        var references = ReferenceCheck(&reader)
        references.run(&reader.diagnostics)
        // Behind an error, what looks unused or out of reach is mostly its consequence.
        if !reader.diagnostics.hasErrors {
            references.warnOfUnused(&reader.diagnostics)
            configuration.warnOfUnreachableRoutes(&reader.diagnostics)
        }
        return configuration
    }

    private static func checkVersion(_ reader: inout ConfigurationReader) {
        guard let version = reader.expected("version", as: Located<Int>.self), version.value != 1 else { return }
        reader.error(
            .configBadVersion, at: version.location, "version \(version.value) is not known: the only one is 1")
    }

    private static func readAdmin(_ reader: inout ConfigurationReader) -> AdminConfiguration? {
        guard let node = reader.node("admin") else { return .standard(at: reader.location) }
        if case .scalar(let scalar) = node.content, scalar.text == "off" { return nil }
        return reader.block("admin")
    }

    private static func readProviders(
        _ reader: inout ConfigurationReader, knownKinds: [String]
    ) -> [ProviderConfiguration] {
        guard let node = reader.node("providers") else { return [] }
        guard let entries = node.entries else {
            reader.diagnostics.add(node.mismatch("providers ", mustBe: "a block of names"))
            return []
        }
        return entries.compactMap { entry in
            reader.checkName(entry.key)
            return ProviderConfiguration.read(entry, knownKinds: knownKinds, into: &reader.diagnostics)
        }
    }

    private static func readUpstreams(_ reader: inout ConfigurationReader) -> [UpstreamConfiguration] {
        guard let node = reader.expected("upstreams", as: AnyNode.self)?.node else { return [] }
        if node.entries?.isEmpty == true {
            reader.error(.configBadValue, at: node.location, "upstreams: must not be empty")
        }
        for entry in node.entries ?? [] { reader.checkName(entry.key) }
        return reader.namedBlocks("upstreams", noun: "upstream", as: UpstreamConfiguration.Block.self).map {
            name, block in
            UpstreamConfiguration(
                name: name, endpoints: block.endpoints.elements, timeouts: block.timeouts, host: block.host,
                balance: block.balance, wire: block.wire)
        }
    }

    private static func readRoutes(_ reader: inout ConfigurationReader) -> [RouteConfiguration] {
        guard let node = reader.expected("routes", as: AnyNode.self)?.node else { return [] }
        guard let elements = node.elements else {
            reader.diagnostics.add(node.mismatch("routes ", mustBe: "a list"))
            return []
        }
        if elements.isEmpty { reader.error(.configBadValue, at: node.location, "routes: must not be empty") }
        var places: [String: SourceLocation] = [:]
        return elements.enumerated().compactMap { index, element in
            let name = element["name"].flatMap { try? Located<String>(decoding: $0) }
            if let name, let first = places.updateValue(name.location, forKey: name.value) {
                reader.error(
                    .configDuplicateName, at: name.location,
                    "another route is called \(quoted(name.value)), on line \(first.line)")
            }
            let title = name.map { "route \(quoted($0.value))" } ?? "routes[\(index)]"
            return element.decode(RouteConfiguration.self, title: title, into: &reader.diagnostics)
        }
    }
}

/// A value of any type, as it stands.
struct AnyNode: ConfigurationValue {
    let node: ConfigurationNode

    init(decoding node: ConfigurationNode) throws(ConfigurationError) { self.node = node }
}
