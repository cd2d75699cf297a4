internal import MartletAccounts
package import MartletConfig
internal import MartletCore
package import MartletProvider
internal import MartletProxy
internal import MartletRedis
package import MartletRouter
internal import MartletSignIn
package import MartletTLS

/// A configuration that was read, decoded, cross-checked and compiled: everything that can be wrong without I/O has been found.
///
/// `martlet check` makes one; `run` makes one and builds the gateway from it.
package struct Blueprint: Sendable {
    package let configuration: GatewayConfiguration
    package let routes: RouteTable
    package let providers: [PreparedProvider]
    /// Signs what upstreams are told, where the configuration asks for it.
    package let assertion: AssertionSigner?
    let store: StorePlan
    /// Certificates, keys and authorities of listeners and upstreams.
    let security: WireSecurity

    /// Where shared values are kept.
    enum StorePlan: Sendable {
        case memory
        case redis(RedisURL)
    }

    /// Reads a file.
    /// - Parameters:
    ///   - path: the configuration file.
    ///   - registry: the plugins that there are.
    ///   - environment: looks up `${VAR}`.
    ///   - tickets: what TLS sessions of its listeners are sealed with; a running gateway's, so that they go on.
    /// - Returns: the blueprint unless there is an error, and every diagnostic.
    package static func read(
        _ path: String, registry: ProviderRegistry, environment: @escaping (String) -> String?,
        tickets: TLSTicketKeys = TLSTicketKeys(clock: .system)
    ) -> (Blueprint?, Diagnostics) {
        make(
            from: GatewayConfiguration.load(
                path: path, environment: environment, knownKinds: registry.kinds.map(\.rawValue)),
            registry, tickets)
    }

    /// Reads a text; for configurations that the program writes itself.
    package static func read(
        text: String, name: String, registry: ProviderRegistry, environment: @escaping (String) -> String?
    ) -> (Blueprint?, Diagnostics) {
        make(
            from: GatewayConfiguration.decode(
                text: Array(text.utf8), file: name, environment: environment, knownKinds: registry.kinds.map(\.rawValue)
            ),
            registry, TLSTicketKeys(clock: .system))
    }

    private static func make(
        from loaded: (configuration: GatewayConfiguration?, diagnostics: Diagnostics), _ registry: ProviderRegistry,
        _ tickets: TLSTicketKeys
    ) -> (Blueprint?, Diagnostics) {
        var diagnostics = loaded.diagnostics
        guard let configuration = loaded.configuration else { return (nil, diagnostics) }
        let providers = prepare(configuration.providers, registry, &diagnostics)
        let routes = RouteTable.compile(
            configuration.routes, mounts: mounts(configuration), upstreams: configuration.upstreams.map(\.name.value),
            providers: configuration.providers.map(\.name.value), paths: configuration.server.paths,
            limits: configuration.server.limits, assertionHeader: configuration.assertion?.header, into: &diagnostics)
        if let routes, !diagnostics.hasErrors {
            let claims = ProviderClaims(providers, hasUsers: configuration.accounts != nil, into: &diagnostics)
            claims.check(routes, configuration.routes, into: &diagnostics)
            claims.warnOfPasswords(routes, configuration, into: &diagnostics)
        }
        let assertion = signer(configuration.assertion, &diagnostics)
        let store = plan(configuration.store, &diagnostics)
        checkAccounts(configuration.accounts, &diagnostics)
        for listener in configuration.server.listeners { listener.checkOwners(into: &diagnostics) }
        let security = WireSecurity(configuration, tickets: tickets, into: &diagnostics)
        security.warn(at: Clock.system.unixTime, into: &diagnostics)
        guard let routes, let store, !diagnostics.hasErrors else { return (nil, diagnostics) }
        return (
            Blueprint(
                configuration: configuration, routes: routes, providers: providers, assertion: assertion, store: store,
                security: security),
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

    /// The paths that the gateway answers itself; one without providers has nobody to sign in, and leaves all to its routes.
    private static func mounts(_ configuration: GatewayConfiguration) -> [RouteMount] {
        guard !configuration.providers.isEmpty else { return [] }
        let mounts = SignInMounts(
            configuration.sessions, configuration.wellKnown, hasKeySet: configuration.assertion != nil)
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
            registry.factory(for: ProviderKind(rawValue: configuration.kind.value))?
                .prepare(configuration.block, name: configuration.name.value, into: &diagnostics)
        }
    }

    /// Reads the account store's URL as opening the store does.
    private static func checkAccounts(_ accounts: AccountsConfiguration?, _ diagnostics: inout Diagnostics) {
        guard let url = accounts?.url else { return }
        do throws(AccountError) {
            _ = try AccountURL(url.value)
        } catch {
            diagnostics.error(error.code, at: url.location, error.message)
        }
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
        // Connections read the files again; here they are held against the rules.
        do { _ = try url.security?.makeContext() } catch {
            diagnostics.error(error.code, at: location, error.message)
            return nil
        }
        return .redis(url)
    }
}

extension Blueprint {
    /// The same with `server.listen` replaced by one address, as `--listen` asks.
    func listening(on text: String, _ diagnostics: Diagnostics) -> (Blueprint?, Diagnostics) {
        var diagnostics = diagnostics
        let place = SourceLocation(file: "--listen", line: 1, column: 1)
        guard let address = SocketAddress(text) else {
            diagnostics.error("config.bad_address", at: place, "'\(text)' is not an address to listen on")
            return (nil, diagnostics)
        }
        var changed = configuration
        changed.server.listeners = [ListenerConfiguration(address: Located(address, at: place), reusePort: false)]
        return (
            Blueprint(
                configuration: changed, routes: routes, providers: providers, assertion: assertion, store: store,
                security: security.withListeners(1)),
            diagnostics
        )
    }
}
