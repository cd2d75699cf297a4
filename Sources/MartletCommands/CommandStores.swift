internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletEvents
internal import MartletProvider
internal import MartletRedis
internal import MartletServer

/// Opens the stores of a configuration for a command.
enum CommandStores {
    /// Runs a body with the account store, and closes it.
    /// - Parameter missing: what is thrown without `accounts:`.
    /// - Throws: exit code 69 if the store is unavailable.
    static func withAccounts<Value: Sendable>(
        _ blueprint: Blueprint, _ services: Services, access: StoreAccess, missing: StartError,
        _ body: (AccountStore) async throws(StartError) -> Value
    ) async throws(StartError) -> Value {
        let opened = try OpenAccounts.make(
            blueprint.configuration.accounts, services, previous: nil, access: access)
        guard let accounts = opened?.store else { throw missing }
        return try await accounts.open { () async throws(StartError) in
            // What a command changes is reported like what gateways change.
            if access == .full { accounts.subscribe(blueprint.subscriptions) }
            return try await body(accounts)
        }
    }

    /// The store of running gateways, connected if it is available; `nil` for `memory:`.
    static func shared(_ blueprint: Blueprint, _ services: Services) async throws(StartError) -> SharedStore? {
        guard case .redis = blueprint.store else { return nil }
        let store = try SharedStore.make(blueprint, services, CacheInvalidator(logger: services.logger))
        try? await store.redis?.waitUntilConnected()
        return store
    }
}

extension AccountStore {
    /// Starts the store for a body, and shuts it down.
    /// - Throws: exit code 69 if it is unavailable.
    func open<Value: Sendable>(
        for body: () async throws(StartError) -> Value
    ) async throws(StartError) -> Value {
        do throws(AccountError) { try await start() } catch {
            await shutdown()
            throw StartError(error, exit: .unavailable)
        }
        let outcome = await Result(of: body)
        await shutdown()
        return try outcome.get()
    }
}

extension Result where Failure == StartError, Success: Sendable {
    /// What a body returns or throws, for what is to be done afterwards in both cases.
    init(of body: () async throws(StartError) -> Success) async {
        do throws(StartError) { self = .success(try await body()) } catch { self = .failure(error) }
    }
}

extension Blueprint {
    /// The provider that has something: the one of `--provider`, or the only one.
    /// - Parameters:
    ///   - name: that of `--provider`.
    ///   - none: what is thrown if there is none.
    ///   - many: the code if there are several.
    ///   - part: what the provider has; `nil` if it lacks it.
    func provider<Part>(
        _ name: String?, none: StartError, many: ErrorCode, with part: (ProviderHandle) -> Part?
    ) throws(StartError) -> (prepared: PreparedProvider, part: Part) {
        var found: [(prepared: PreparedProvider, part: Part)] = []
        for prepared in providers where name == nil || prepared.name == name {
            let context = ProviderContext.detached(prepared.name, clock: .system, hasUsers: true)
            guard let part = part(try prepared.built(context)) else { continue }
            found.append((prepared, part))
        }
        guard let first = found.first else { throw none }
        guard found.count == 1 else {
            let names = found.map { "'\($0.prepared.name)'" }.joined(separator: ", ")
            throw StartError(code: many, message: "--provider is required: one of \(names)", exit: .usage)
        }
        return first
    }
}

extension PreparedProvider {
    func built(_ context: ProviderContext) throws(StartError) -> ProviderHandle {
        do throws(ConfigurationError) { return try build(context) } catch {
            throw StartError(code: error.code, message: error.description, exit: .configuration)
        }
    }
}

extension StartError {
    /// An error of the account store: 64 for what does not exist, 69 for an outage.
    init(_ error: AccountError) {
        let exit: ExitCode =
            switch error.kind {
            case .unavailable: .unavailable
            case .notFound, .duplicateUser, .invalidClaims: .usage
            case .identityTaken, .providerAlreadyLinked, .lastIdentity, .outdated: .internalFault
            }
        self.init(code: error.code, message: error.message, exit: exit)
    }
}
