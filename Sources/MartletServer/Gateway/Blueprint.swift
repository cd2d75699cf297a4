package import MartletAccounts
package import MartletConfig
internal import MartletCore
internal import MartletIdentities
internal import MartletPages
package import MartletProvider
package import MartletRedis
package import MartletRouter
internal import MartletSignIn
package import MartletTLS

/// A configuration that was read, decoded, validated and compiled: every error that can be found without I/O has been
/// found.
///
/// `martlet check` stops here; `run` builds the gateway from it.
package struct Blueprint: Sendable {
    package private(set) var configuration: GatewayConfiguration
    package let routes: RouteTable
    package let providers: [PreparedProvider]
    /// Signs the identity assertion for upstreams; `nil` without `assertion:`.
    package let assertion: AssertionSigner?
    package let store: StorePlan
    package let webhooks: [WebhookPlan]
    /// The keys that encrypt grants; `nil` without any.
    let grantKeys: GrantKeys?
    /// Rules that give accounts claims.
    package let claimRules: LoginClaimRules
    /// Certificates, keys and authorities of listeners and upstreams.
    private(set) var tls: TLSMaterial
    /// The audit log; `nil` without `audit:`.
    package let audit: AuditPlan?
    /// The logo and the templates of the sign-in pages.
    let pageFiles: PageFiles

    /// The shared store to open.
    package enum StorePlan: Sendable {
        case memory
        case redis(RedisURL)
    }

    /// Reads a file.
    /// - Parameters:
    ///   - path: the configuration file.
    ///   - registry: the registered provider kinds.
    ///   - environment: looks up `${VAR}`.
    ///   - tickets: the keys of TLS session tickets; a reload passes the running gateway's, so that sessions can be
    ///     resumed.
    /// - Returns: the blueprint, `nil` if there is an error, and every diagnostic.
    package static func read(
        _ path: String, registry: ProviderRegistry, environment: @escaping (String) -> String?,
        tickets: TLSTicketKeys = TLSTicketKeys(clock: .system)
    ) -> (Blueprint?, Diagnostics) {
        var findings = Findings(tickets)
        var registry = registry
        let loaded = GatewayConfiguration.load(
            path: path, environment: environment, knownKinds: registry.kinds.map(\.rawValue),
            loadPlugins: { registry.load($0, into: &$1) },
            examine: { findings.examine($0, registry, into: &$1) })
        return make(loaded.configuration, findings, loaded.diagnostics)
    }

    /// Reads the same configuration text again, with the current content of the files that it names.
    package static func read(
        _ source: ConfigurationSource, registry: ProviderRegistry, environment: @escaping (String) -> String?,
        tickets: TLSTicketKeys
    ) -> (Blueprint?, Diagnostics) {
        decode(source.text, source.file, registry, environment, tickets)
    }

    /// Reads a text; for configurations that the program generates.
    package static func read(
        text: String, name: String, registry: ProviderRegistry, environment: @escaping (String) -> String?
    ) -> (Blueprint?, Diagnostics) {
        decode(Array(text.utf8), name, registry, environment, TLSTicketKeys(clock: .system))
    }

    private static func decode(
        _ text: [UInt8], _ file: String, _ registry: ProviderRegistry, _ environment: @escaping (String) -> String?,
        _ tickets: TLSTicketKeys
    ) -> (Blueprint?, Diagnostics) {
        var findings = Findings(tickets)
        var registry = registry
        let loaded = GatewayConfiguration.decode(
            text: text, file: file, environment: environment, knownKinds: registry.kinds.map(\.rawValue),
            loadPlugins: { registry.load($0, into: &$1) },
            examine: { findings.examine($0, registry, into: &$1) })
        return make(loaded.configuration, findings, loaded.diagnostics)
    }

    /// The results of single blocks, collected even if other blocks have errors, so that all errors are reported
    /// together.
    private struct Findings {
        let tickets: TLSTicketKeys
        var providers: [PreparedProvider] = []
        var assertion: AssertionSigner?
        var store: StorePlan?
        var webhooks: [WebhookPlan] = []
        var grantKeys: GrantKeys?
        var claimRules = LoginClaimRules()
        var tls: TLSMaterial?
        var audit: AuditPlan?
        var pageFiles = PageFiles()

        init(_ tickets: TLSTicketKeys) { self.tickets = tickets }

        mutating func examine(
            _ configuration: GatewayConfiguration, _ registry: ProviderRegistry, into diagnostics: inout Diagnostics
        ) {
            providers = prepare(configuration.providers, registry, &diagnostics)
            assertion = signer(configuration.assertion, &diagnostics)
            store = plan(configuration.store, &diagnostics)
            checkAccounts(configuration.accounts, &diagnostics)
            grantKeys = keys(configuration.accounts, &diagnostics)
            checkStorage(of: providers, configuration.accounts, &diagnostics)
            claimRules = LoginClaimRules(configuration, into: &diagnostics)
            webhooks = WebhookPlan.all(configuration, into: &diagnostics)
            audit = AuditPlan(configuration.audit, into: &diagnostics)
            for listener in configuration.server.listeners { listener.checkOwners(into: &diagnostics) }
            let tls = TLSMaterial(configuration, tickets: tickets, into: &diagnostics)
            tls.warn(at: Clock.system.unixTime, into: &diagnostics)
            self.tls = tls
            guard let browser = configuration.browser else { return }
            pageFiles = PageFiles(browser.pages, configuration.providers, into: &diagnostics)
            // A provider with errors is not among them.
            if providers.count == configuration.providers.count {
                checkRegistration(browser, providers, &diagnostics)
                checkStart(browser, providers, &diagnostics)
            }
        }
    }

    private static func make(
        _ configuration: GatewayConfiguration?, _ findings: Findings, _ found: Diagnostics
    ) -> (Blueprint?, Diagnostics) {
        var diagnostics = found
        guard var configuration else { return (nil, diagnostics) }
        if let browser = configuration.browser {
            configuration.source.files += PageFiles.unnamedFiles(browser.pages)
        }
        let providers = findings.providers
        let routes = RouteTable.compile(
            configuration.routes, mounts: mounts(configuration), upstreams: configuration.upstreams.map(\.name.value),
            providers: configuration.providers.map(\.name.value), paths: configuration.server.paths,
            limits: configuration.server.limits, assertionHeader: configuration.assertion?.header, into: &diagnostics)
        if let routes, !diagnostics.hasErrors {
            let claims = ProviderClaims(providers, hasUsers: configuration.accounts != nil, into: &diagnostics)
            claims.checkSources(configuration.providers, into: &diagnostics)
            claims.check(routes, configuration.routes, into: &diagnostics)
            claims.warnAboutCleartextPasswords(routes, configuration, into: &diagnostics)
            claims.warnAboutIdentityTokens(routes, configuration, into: &diagnostics)
            claims.checkMail(configuration, findings.webhooks, into: &diagnostics)
            claims.warnAboutNames(configuration.browser, configuration.accounts, into: &diagnostics)
        }
        guard let routes, let store = findings.store, let tls = findings.tls, !diagnostics.hasErrors else {
            return (nil, diagnostics)
        }
        return (
            Blueprint(
                configuration: configuration, routes: routes, providers: providers, assertion: findings.assertion,
                store: store, webhooks: findings.webhooks, grantKeys: findings.grantKeys,
                claimRules: findings.claimRules, tls: tls, audit: findings.audit, pageFiles: findings.pageFiles),
            diagnostics
        )
    }

    private static func signer(
        _ configuration: AssertionConfiguration?, _ diagnostics: inout Diagnostics
    ) -> AssertionSigner? {
        guard let configuration else { return nil }
        do { return try AssertionSigner(configuration) } catch {
            diagnostics.add(error)
            return nil
        }
    }

    /// The paths that the gateway serves itself: that of checks first, because it is below that of the sign-in.
    private static func mounts(_ configuration: GatewayConfiguration) -> [RouteMount] {
        checkMounts(configuration) + signInMounts(configuration)
    }

    /// The paths of the sign-in; none without providers, because no client can sign in.
    private static func signInMounts(_ configuration: GatewayConfiguration) -> [RouteMount] {
        guard !configuration.providers.isEmpty else { return [] }
        let mounts = SignInMounts(
            configuration.sessions, configuration.wellKnown, hasKeySet: configuration.assertion != nil,
            hasBrowser: configuration.browser != nil)
        let location = configuration.routes.first?.name.location ?? SourceLocation(file: "", line: 1, column: 1)
        let names = [(path: "\(mounts.base)/**", name: "martlet.sign_in")]
        return (names + mounts.paths.map { (path: $0, name: "martlet.well_known") }).map { path, name in
            RouteMount(
                name: name, hosts: configuration.sessions.hosts, path: path, location: location,
                bodyLimit: SignInBody.maximumBytes)
        }
    }

    private static func prepare(
        _ configurations: [ProviderConfiguration], _ registry: ProviderRegistry, _ diagnostics: inout Diagnostics
    ) -> [PreparedProvider] {
        configurations.compactMap { configuration in
            let factory = registry.factory(for: ProviderKind(rawValue: configuration.kind.value))
            var prepared = factory?.prepare(
                configuration.block(factory?.grammar), name: configuration.name.value, into: &diagnostics)
            let limits = configuration.bulkhead.map { BulkheadLimits(concurrency: $0.concurrency, queue: $0.queue) }
            prepared?.bulkhead = limits ?? (factory?.isFromLibrary == true ? .standard : nil)
            return prepared
        }
    }

    /// Parses the account store's URL as opening the store does.
    private static func checkAccounts(_ accounts: AccountsConfiguration?, _ diagnostics: inout Diagnostics) {
        guard let url = accounts?.url else { return }
        do throws(AccountError) {
            guard try !AccountURL(url.value).isVerified else { return }
            diagnostics.warning(
                .configInsecure, at: url.location,
                "accounts: the server is on another machine and not verified; use sslmode=verify-full")
        } catch {
            diagnostics.error(error.code, at: url.location, error.message)
        }
    }

    /// The keys of grants; an error at the first that has another form.
    private static func keys(_ accounts: AccountsConfiguration?, _ diagnostics: inout Diagnostics) -> GrantKeys? {
        guard let keys = accounts?.keys, !keys.isEmpty else { return nil }
        for key in keys where GrantKeys([key.value]) == nil {
            diagnostics.error(
                .configBadValue, at: key.location,
                "accounts.key: must be 32 bytes in base64; martlet keygen accounts makes one")
        }
        return GrantKeys(keys.map(\.value))
    }

    /// What providers get from their issuers about users has a place in the account store only.
    private static func checkStorage(
        of providers: [PreparedProvider], _ accounts: AccountsConfiguration?, _ diagnostics: inout Diagnostics
    ) {
        for provider in providers {
            if let location = provider.facts.grants, accounts?.keys.isEmpty ?? true {
                diagnostics.error(
                    .configMissingKey, at: location,
                    "provider '\(provider.name)' gets refresh tokens, which need accounts.key_file")
            }
            if let location = provider.facts.notifications, accounts == nil {
                diagnostics.error(
                    .configMissingKey, at: location,
                    "notifications of provider '\(provider.name)' need accounts")
            }
            if let location = provider.facts.transfers, accounts == nil {
                diagnostics.error(
                    .configMissingKey, at: location, "the migration of provider '\(provider.name)' needs accounts")
            }
        }
    }

    private static func checkStart(
        _ browser: BrowserConfiguration, _ providers: [PreparedProvider], _ diagnostics: inout Diagnostics
    ) {
        guard let start = browser.start else { return }
        let redirecting = providers.filter { $0.facts.redirects != nil }.map(\.name)
        guard !redirecting.contains(where: { $0.hasSameBytes(as: start.value) }) else { return }
        diagnostics.error(
            .configBadValue, at: start.location,
            "start: '\(start.value)' is no provider that browsers are redirected to"
                + (redirecting.isEmpty ? "" : "; those are \(redirecting.joined(separator: ", "))"))
    }

    /// Accounts are created with a name and a password, for a provider that can store them.
    private static func checkRegistration(
        _ browser: BrowserConfiguration, _ providers: [PreparedProvider], _ diagnostics: inout Diagnostics
    ) {
        guard browser.registers, !providers.contains(where: \.facts.storesUsers) else { return }
        diagnostics.error(
            .configMissingKey, at: browser.registersLocation,
            "register: needs a provider for passwords whose users are in the account store")
    }

    private static func plan(_ store: StoreConfiguration, _ diagnostics: inout Diagnostics) -> StorePlan? {
        if store.url.value == "memory:" { return .memory }
        let location = store.url.location
        var url: RedisURL
        do { url = try RedisURL(store.url.value) } catch {
            diagnostics.error(error.code, at: location, error.message)
            return nil
        }
        url.security?.resolveFiles { FilePath($0, relativeTo: location.file).text }
        guard apply(store, to: &url, &diagnostics) else { return nil }
        let keyLocation = store.tls?.value.certificate?.key.location ?? location
        if let key = url.security?.keyFile { diagnostics.warnOfExposure(key, at: keyLocation) }
        // Every connection reads the files again; this only validates them.
        do { _ = try url.security?.makeContext() } catch {
            diagnostics.error(error.code, at: Self.location(of: error.code, store), error.message)
            return nil
        }
        if url.seeds.contains(where: \.isOnNetwork) {
            warnAboutSeal(store, &diagnostics)
            if url.security == nil {
                diagnostics.warning(
                    .configInsecure, at: location,
                    "store: sessions and the password of a store on another machine can be read on the way; "
                        + "use rediss://")
            }
        }
        return .redis(url)
    }

    /// The key that names the file which an error of TLS is about.
    private static func location(of code: ErrorCode, _ store: StoreConfiguration) -> SourceLocation {
        guard let tls = store.tls?.value else { return store.url.location }
        let text = code.rawValue
        if text.hasPrefix("tls.ca_") { return tls.authorityFile?.location ?? store.url.location }
        let files = tls.certificate
        let location = text.hasPrefix("tls.key_") ? files?.key.location : files?.certificate.location
        return location ?? store.url.location
    }

    /// Warns where whoever can write to the store can be any user.
    private static func warnAboutSeal(_ store: StoreConfiguration, _ diagnostics: inout Diagnostics) {
        let reason: String
        if let seal = store.seal {
            guard seal.mode == .observe else { return }
            reason = "'seal' only observes: mode: enforce rejects what does not verify"
        } else {
            reason = "there is no 'seal'; martlet keygen store makes a key for it"
        }
        diagnostics.warning(
            .configInsecure, at: store.url.location,
            "store: whoever can write to this store can be any user, because \(reason)")
    }

    private static func reading(_ file: FilePath?) -> (@Sendable () -> Secret?)? {
        guard let file else { return nil }
        return { ConfigurationReader.secret(in: file) }
    }

    /// Adds the credentials and TLS files that stand beside the URL.
    private static func apply(
        _ store: StoreConfiguration, to url: inout RedisURL, _ diagnostics: inout Diagnostics
    ) -> Bool {
        if let password = store.password {
            guard url.credentials == nil else {
                diagnostics.error(
                    .configConflictingKeys, at: password.location, "password: the store URL has a password, too")
                return false
            }
            url.credentials = RedisURL.Credentials(
                user: store.username?.value, password: password.value, readAgain: reading(store.passwordFile))
        }
        if let password = store.sentinel.password {
            guard case .sentinel = url.layout else {
                diagnostics.error(
                    .configConflictingKeys, at: password.location, "sentinel: the store URL is not redis+sentinel://")
                return false
            }
            url.sentinelCredentials = RedisURL.Credentials(
                user: store.sentinel.username, password: password.value,
                readAgain: reading(store.sentinel.passwordFile))
        }
        guard let tls = store.tls else { return true }
        guard let security = url.security else {
            diagnostics.error(
                .configConflictingKeys, at: tls.location,
                "tls: the store URL is without TLS; it needs rediss://, rediss+cluster:// or ?tls=true")
            return false
        }
        guard security == RedisURL.Security() else {
            diagnostics.error(.configConflictingKeys, at: tls.location, "tls: the store URL has TLS options, too")
            return false
        }
        url.security?.caFile = tls.value.authorityFile?.value
        url.security?.certificateFile = tls.value.certificate?.certificate.value
        url.security?.keyFile = tls.value.certificate?.key.value
        url.security?.serverName = tls.value.serverName
        return true
    }
}

extension Blueprint {
    /// The same blueprint with `server.listen` replaced by the address of `--listen`.
    package func listening(on text: String, _ diagnostics: Diagnostics) -> (Blueprint?, Diagnostics) {
        var diagnostics = diagnostics
        let location = SourceLocation(file: "--listen", line: 1, column: 1)
        guard let address = SocketAddress(text) else {
            diagnostics.error("config.bad_address", at: location, "expected an address such as 127.0.0.1:8080")
            return (nil, diagnostics)
        }
        var changed = self
        var listener = ListenerConfiguration(address: Located(address, at: location), reusePort: false)
        listener.health = configuration.server.health
        changed.configuration.server.listeners = [listener]
        changed.tls = tls.withCleartextListeners(1)
        return (changed, diagnostics)
    }
}
