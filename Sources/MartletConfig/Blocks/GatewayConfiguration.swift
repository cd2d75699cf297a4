/// A whole `config.yaml`, decoded and cross-checked: plain values with all defaults filled in.
// lint:large-type one property for each block of the file
@frozen package struct GatewayConfiguration: Sendable {
    package var instanceID: String?
    package var server: ServerConfiguration
    package var admin: AdminConfiguration?
    package var log = LogConfiguration()
    package var tracing: TracingConfiguration?
    package var audit: AuditConfiguration?
    package var store: StoreConfiguration
    package var jwks = JWKSConfiguration()
    package var outbound = OutboundConfiguration()
    package var accounts: AccountsConfiguration?
    package var webhooks: [WebhookConfiguration] = []
    package var outbox = OutboxConfiguration()
    /// `nil`: mails are sent by a webhook's receiver, or not at all.
    package var mail: MailConfiguration?
    package var sessions = SessionsConfiguration()
    /// Whether there is a `sessions:` block.
    package var hasSessionsBlock = false
    /// `nil`: browsers have neither pages nor cookies.
    package var browser: BrowserConfiguration?
    package var assertion: AssertionConfiguration?
    package var wellKnown = WellKnownConfiguration()
    package var plugins: [PluginConfiguration] = []
    package var providers: [ProviderConfiguration] = []
    package var upstreams: [UpstreamConfiguration] = []
    package var routes: [RouteConfiguration] = []
    /// The text and the files it was read from.
    package var source = ConfigurationSource()
}

extension GatewayConfiguration {
    /// The keys of the whole file.
    package static let grammar = ConfigurationGrammar(keys, of: GatewayConfiguration(at: .none))

    private static let keys: [ConfigurationKey<Self>] = [
        .row(.required("version", .integer(1...1), "The version of the grammar: 1.")) { checkVersion(&$1) },
        .key(
            "instance_id", \.instanceID,
            "The name of this process in log lines, metrics and `/readyz`; the host's name and six random characters if absent."
        ),
        .block("server", \.server, "Listeners, limits and timeouts of the client side."),
        .row(
            .optional(
                "admin", .either([.choice(["off"]), .block(of: AdminConfiguration.self)]), default: "{}",
                "Health, metrics and the dashboard; `off` disables them.")
        ) { $0.admin = readAdmin(&$1) },
        .block("log", \.log, "Log level and format, and access lines."),
        .block("tracing", \.tracing, "Where traces of requests are sent; without it trace contexts pass untouched."),
        .block("audit", \.audit, "The audit log: security events in a signed chain of lines; none if absent."),
        .block(
            "store", \.store, default: "{ url: \"memory:\" }",
            "The store that instances share: sessions, issuers' keys, nonces, throttles."),
        .block(
            "accounts", \.accounts, "The account store; without it a subject is `<provider>:<provider subject>`."),
        .blocks("webhooks", \.webhooks, "Where events of accounts are delivered; they need `accounts`."),
        .check(always: true) { $0.checkWebhooks(&$1) },
        .block("outbox", \.outbox, "The bounds of the queue of events."),
        .block(
            "mail", \.mail, "The mail server for registrations and password resets; it needs `accounts`."),
        .block("sessions", \.sessions, default: nil, "Session lifetimes, and where users sign in."),
        .row(
            .optional(
                "browser", .block(of: BrowserConfiguration.self),
                "Sign-in pages and sessions in cookies, for browsers; it needs `sessions`.")
        ) { $0.browser = readBrowser(&$1, $0.sessions) },
        .block("jwks", \.jwks, "How issuers' keys are fetched and cached."),
        .block("outbound", \.outbound, "Authorities and a proxy for whatever the gateway calls."),
        .block(
            "assertion", \.assertion, "A signed assertion of the caller's identity for upstreams; none if absent."),
        .block("well_known", \.wellKnown, default: nil, "Documents under `/.well-known/` for app platforms."),
        .block(
            "forward_auth", \.server.forwardAuth,
            "How the checks of a proxy that asks before it forwards are responded to."),
        .row(.optional("providers", .map(.provider), "Identity providers, by name.")),
        .blocks("plugins", \.plugins, "Shared libraries that bring further kinds of providers."),
        .row(
            .optional(
                "upstreams", .map(.block(of: UpstreamConfiguration.self)),
                "Where requests are sent, by name; it can be left out where a proxy is trusted and no route has one.")
        ) { if !$0.server.trustsProxies || $1.has("upstreams") { $0.upstreams = readUpstreams(&$1) } },
        .row(
            .optional(
                "rate_limits", .map(.block(of: RateLimitConfiguration.self)),
                "Limits on how often requests may come, by name; routes name them in `limits.rate`.")
        ) { $0.server.rateLimits = $1.entities("rate_limits", noun: "rate limit", \.name) },
        .row(
            .required(
                "routes", .list(.block(of: RouteConfiguration.self), nonEmpty: true),
                "The routes; the first that matches wins.")
        ) {
            $0.routes = readRoutes(&$1)
            checkRoutesForChecks(&$1, $0.server)
        },
        .check { $0.check(&$1) },
    ]

    /// That of a file without keys.
    private init(at location: SourceLocation) {
        self.init(
            server: ServerConfiguration(at: location), admin: .implied(at: location),
            store: StoreConfiguration(at: location))
    }

    /// Reads every block, then checks across them; errors are recorded.
    static func read(_ reader: inout ConfigurationReader, kinds: AvailableKinds) -> GatewayConfiguration? {
        var configuration = GatewayConfiguration(at: reader.location)
        do throws(ConfigurationError) { try reader.read(keys, into: &configuration) } catch {
            reader.diagnostics.add(error)
        }
        let knownKinds = kinds.known(with: configuration.plugins, &reader.diagnostics)
        configuration.providers = readProviders(&reader, knownKinds: knownKinds)
        configuration.hasSessionsBlock = reader.has("sessions")
        configuration.checkTracing(&reader)
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

    /// What only other blocks make possible.
    private func check(_ reader: inout ConfigurationReader) {
        if let node = reader.given("instance_id"), let instanceID {
            reader.checkName(Located(instanceID, at: node.location))
        }
        if let mail, !reader.has("accounts") {
            reader.error(
                .configMissingKey, at: mail.server.location, "mail: needs accounts:, which keeps the mails to be sent")
        }
    }

    /// Reads `admin:`; `nil` with `off`, and after errors.
    static func readAdmin(_ reader: inout ConfigurationReader) -> AdminConfiguration? {
        guard let node = reader.node("admin") else { return .implied(at: reader.location) }
        if case .scalar(let scalar) = node.content, scalar.text == "off" { return nil }
        return reader.block("admin")
    }

    private func checkWebhooks(_ reader: inout ConfigurationReader) {
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
        reader.entries(of: "providers").compactMap { entry in
            reader.checkName(entry.key)
            return ProviderConfiguration.read(entry, knownKinds: knownKinds, into: &reader.diagnostics)
        }
    }

    private static func readUpstreams(_ reader: inout ConfigurationReader) -> [UpstreamConfiguration] {
        if reader.expectedNode("upstreams")?.entries?.isEmpty == true {
            reader.reject("upstreams", .configBadValue, "must not be empty")
        }
        return reader.entities("upstreams", noun: "upstream", \.name)
    }

    private static func readRoutes(_ reader: inout ConfigurationReader) -> [RouteConfiguration] {
        _ = reader.expectedNode("routes")
        reader.checkNotEmpty("routes")
        var locations: [String: SourceLocation] = [:]
        return reader.elements(of: "routes").enumerated().compactMap { index, element in
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

extension GatewayConfiguration {
    /// Whether checks have an endpoint: who can use it is a trusted proxy, but its path is reserved where there are
    /// sessions, too.
    package var servesChecks: Bool { server.trustsProxies || server.forwardAuth.isPresent || hasSessionsBlock }
}

/// The text of a configuration, and the files that it names.
@frozen package struct ConfigurationSource: Sendable {
    package var text: [UInt8] = []
    /// The path of the configuration file, shown in positions; relative paths are resolved against it.
    package var file = ""
    /// Certificates, keys, authorities and secrets: the value of every key that ends in `_file`.
    package var files: [FilePath] = []
}
