extension GatewayConfiguration {
    /// The keys of the whole file.
    package static var grammar: ConfigurationGrammar {
        .init([
            .required("version", .integer(1...1), "The version of the grammar: 1."),
            .optional(
                "instance_id", .text,
                "The name of this process in log lines, metrics and `/readyz`; the host's name and six random characters if absent."
            ),
            .optional(
                "server", .block(of: ServerConfiguration.self), default: "{}",
                "Listeners, limits and timeouts of the client side."),
            .optional(
                "admin", .either([.choice(["off"]), .block(of: AdminConfiguration.self)]), default: "{}",
                "Health, metrics and the dashboard; `off` disables them."),
            .optional(
                "log", .block(of: LogConfiguration.self), default: "{}", "Log level and format, and access lines."),
            .optional(
                "tracing", .block(of: TracingConfiguration.self),
                "Where traces of requests are sent; without it trace contexts pass untouched."),
            .optional(
                "audit", .block(of: AuditConfiguration.self),
                "The audit log: security events in a signed chain of lines; none if absent."),
            .optional(
                "store", .block(of: StoreConfiguration.self), default: "{ url: \"memory:\" }",
                "The store that instances share: sessions, issuers' keys, nonces, throttles."),
            .optional(
                "accounts", .block(of: AccountsConfiguration.self),
                "The account store; without it a subject is `<provider>:<provider subject>`."),
            .optional(
                "webhooks", .list(.block(of: WebhookConfiguration.self), nonEmpty: false), default: "[]",
                "Where events of accounts are delivered; they need `accounts`."),
            .optional(
                "outbox", .block(of: OutboxConfiguration.self), default: "{}", "The bounds of the queue of events."),
            .optional(
                "mail", .block(of: MailConfiguration.self),
                "The mail server for registrations and password resets; it needs `accounts`."),
            .optional(
                "sessions", .block(of: SessionsConfiguration.self), "Session lifetimes, and where users sign in."),
            .optional(
                "browser", .block(of: BrowserConfiguration.self),
                "Sign-in pages and sessions in cookies, for browsers; it needs `sessions`."),
            .optional(
                "jwks", .block(of: JWKSConfiguration.self), default: "{}", "How issuers' keys are fetched and cached."),
            .optional(
                "outbound", .block(of: OutboundConfiguration.self), default: "{}",
                "Authorities and a proxy for whatever the gateway calls."),
            .optional(
                "assertion", .block(of: AssertionConfiguration.self),
                "A signed assertion of the caller's identity for upstreams; none if absent."),
            .optional(
                "well_known", .block(of: WellKnownConfiguration.self),
                "Documents under `/.well-known/` for app platforms."),
            .optional(
                "forward_auth", .block(of: ForwardAuthConfiguration.self), default: "{}",
                "How the checks of a proxy that asks before it forwards are responded to."),
            .optional("providers", .map(.provider), "Identity providers, by name."),
            .optional(
                "plugins", .list(.block(of: PluginConfiguration.self), nonEmpty: false), default: "[]",
                "Shared libraries that bring further kinds of providers."),
            .optional(
                "upstreams", .map(.block(of: UpstreamConfiguration.self)),
                "Where requests are sent, by name; it can be left out where a proxy is trusted and no route has one."),
            .optional(
                "rate_limits", .map(.block(of: RateLimitConfiguration.Block.self)),
                "Limits on how often requests may come, by name; routes name them in `limits.rate`."),
            .required(
                "routes", .list(.block(of: RouteConfiguration.self), nonEmpty: true),
                "The routes; the first that matches wins."),
        ])
    }

    /// Reads every block, then checks across them; errors are recorded.
    static func read(_ reader: inout ConfigurationReader, kinds: AvailableKinds) -> GatewayConfiguration? {
        checkVersion(&reader)
        let plugins = reader.blocks("plugins", as: PluginConfiguration.self).map(\.value)
        let knownKinds = kinds.known(with: plugins, &reader.diagnostics)
        let location = reader.location
        let instanceID = reader.optional("instance_id", as: Located<String>.self)
        if let instanceID { reader.checkName(instanceID) }
        var server = reader.block("server") ?? ServerConfiguration.standard(at: location)
        let admin = readAdmin(&reader)
        let log = reader.block("log") ?? LogConfiguration()
        let tracing: TracingConfiguration? = reader.block("tracing")
        let audit: AuditConfiguration? = reader.block("audit")
        let store = reader.block("store") ?? StoreConfiguration.standard(at: location)
        let jwks = reader.block("jwks") ?? JWKSConfiguration()
        let accounts: AccountsConfiguration? = reader.block("accounts")
        let webhooks = readWebhooks(&reader)
        let outbox = reader.block("outbox") ?? OutboxConfiguration()
        let mail = readMail(&reader)
        let sessions = reader.block("sessions") ?? SessionsConfiguration()
        let browser = readBrowser(&reader, sessions)
        let assertion: AssertionConfiguration? = reader.block("assertion")
        let wellKnown = reader.block("well_known") ?? WellKnownConfiguration()
        server.forwardAuth = reader.block("forward_auth") ?? server.forwardAuth
        let providers = readProviders(&reader, knownKinds: knownKinds)
        let upstreams = server.trustsProxies && !reader.has("upstreams") ? [] : readUpstreams(&reader)
        server.rateLimits = RateLimitConfiguration.readAll(&reader)
        let routes = readRoutes(&reader)
        checkRoutesForChecks(&reader, server)
        var configuration = GatewayConfiguration(
            server: server, admin: admin, log: log, store: store, jwks: jwks, accounts: accounts,
            webhooks: webhooks, outbox: outbox, mail: mail, sessions: sessions,
            hasSessionsBlock: reader.has("sessions"), browser: browser, assertion: assertion, wellKnown: wellKnown,
            providers: providers, upstreams: upstreams, routes: routes)
        configuration.instanceID = instanceID?.value
        configuration.outbound = reader.block("outbound") ?? OutboundConfiguration()
        configuration.plugins = plugins
        configuration.tracing = tracing
        configuration.checkTracing(&reader)
        configuration.audit = audit
        configuration.fillInProviders()
        configuration.checkListeners(&reader.diagnostics)
        configuration.checkProxyProtocol(&reader)
        configuration.checkMirrors(&reader.diagnostics)
        configuration.warnOfSharedThrottles(&reader.diagnostics)
        var references = ReferenceCheck(&reader)
        references.run(&reader.diagnostics)
        configuration.checkRateLimits(&reader)
        // After an error, unused or unreachable entries are mostly its consequence.
        if !reader.diagnostics.hasErrors {
            references.warnOfUnused(&reader.diagnostics)
            configuration.warnOfUnreachableRoutes(&reader.diagnostics)
            configuration.warnOfLaxRoutes(&reader.diagnostics)
            configuration.warnOfLongAttempts(&reader.diagnostics)
        }
        return configuration
    }

    private static func checkVersion(_ reader: inout ConfigurationReader) {
        guard let version = reader.expected("version", as: Located<Int>.self), version.value != 1 else { return }
        reader.error(
            .configBadVersion, at: version.location, "version \(version.value) is not supported: the only one is 1")
    }

    /// Reads `admin:`; `nil` with `off`, and after errors.
    static func readAdmin(_ reader: inout ConfigurationReader) -> AdminConfiguration? {
        guard let node = reader.node("admin") else { return .standard(at: reader.location) }
        if case .scalar(let scalar) = node.content, scalar.text == "off" { return nil }
        return reader.block("admin")
    }

    private static func readWebhooks(_ reader: inout ConfigurationReader) -> [WebhookConfiguration] {
        let webhooks = reader.blocks("webhooks", as: WebhookConfiguration.self).map(\.value)
        var names: Set<String> = []
        for webhook in webhooks {
            reader.checkName(webhook.name)
            if !names.insert(webhook.name.value).inserted {
                reader.error(
                    .configDuplicateName, at: webhook.name.location,
                    "two webhooks are named \(quoted(webhook.name.value))")
            }
        }
        if let first = webhooks.first, !reader.has("accounts") {
            reader.error(
                .configMissingKey, at: first.name.location, "webhooks: need accounts:, which keeps the events")
        }
        return webhooks
    }

    private static func readMail(_ reader: inout ConfigurationReader) -> MailConfiguration? {
        let mail: MailConfiguration? = reader.block("mail")
        if let mail, !reader.has("accounts") {
            reader.error(
                .configMissingKey, at: mail.server.location, "mail: needs accounts:, which keeps the mails to be sent")
        }
        return mail
    }

    private static func readBrowser(
        _ reader: inout ConfigurationReader, _ sessions: SessionsConfiguration
    ) -> BrowserConfiguration? {
        guard let entry = reader.entry("browser") else { return nil }
        if !reader.has("sessions") {
            reader.error(
                .configMissingKey, at: entry.key.location, "browser: needs sessions:, whose tokens its cookies hold")
        }
        guard var browser: BrowserConfiguration = reader.block("browser") else { return nil }
        browser.location = entry.key.location
        if !sessions.serves(browser.host) {
            reader.error(
                .configBadValue, at: browser.origin.location,
                "origin: sessions.hosts does not have its host, so that its sign-in pages could not be reached")
        }
        return browser
    }

    private static func readProviders(
        _ reader: inout ConfigurationReader, knownKinds: [String]?
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
        return reader.namedBlocks("upstreams", noun: "upstream").map { name, block in
            var upstream: UpstreamConfiguration = block
            upstream.name = name
            return upstream
        }
    }

    private static func readRoutes(_ reader: inout ConfigurationReader) -> [RouteConfiguration] {
        guard let node = reader.expected("routes", as: AnyNode.self)?.node else { return [] }
        guard let elements = node.elements else {
            reader.diagnostics.add(node.mismatch("routes ", mustBe: "a list"))
            return []
        }
        if elements.isEmpty { reader.error(.configBadValue, at: node.location, "routes: must not be empty") }
        var locations: [String: SourceLocation] = [:]
        return elements.enumerated().compactMap { index, element in
            let name = element["name"].flatMap { try? Located<String>(decoding: $0) }
            if let name, let first = locations.updateValue(name.location, forKey: name.value) {
                reader.error(
                    .configDuplicateName, at: name.location,
                    "duplicate route name \(quoted(name.value)): first used on line \(first.line)")
            }
            let title = name.map { "route \(quoted($0.value))" } ?? "routes[\(index)]"
            return element.decode(RouteConfiguration.self, title: title, into: &reader.diagnostics)
        }
    }
}

/// A value of any type, not decoded.
struct AnyNode: ConfigurationValue {
    let node: ConfigurationNode

    init(decoding node: ConfigurationNode) throws(ConfigurationError) { self.node = node }
}
