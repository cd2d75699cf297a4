internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletEvents
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
        do throws(AccountError) {
            try await accounts.start()
        } catch {
            await accounts.shutdown()
            throw StartError(code: error.code, message: error.message, exit: .unavailable)
        }
        // What a command changes is reported like what gateways change.
        if access == .full { accounts.subscribe(blueprint.subscriptions) }
        let outcome: Result<Value, StartError>
        do throws(StartError) {
            outcome = .success(try await body(accounts))
        } catch {
            outcome = .failure(error)
        }
        await accounts.shutdown()
        return try outcome.get()
    }

    /// The store of running gateways, connected if it is available; `nil` for `memory:`.
    static func shared(_ blueprint: Blueprint, _ services: Services) async throws(StartError) -> SharedStore? {
        guard case .redis = blueprint.store else { return nil }
        let store = try SharedStore.make(blueprint, services, CacheInvalidator(logger: services.logger))
        try? await store.redis?.waitUntilConnected()
        return store
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
