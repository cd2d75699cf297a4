package import MartletAccounts
package import MartletConfig
internal import MartletCore

/// The account store of a configuration; reused by reloads that do not change `accounts:`.
package struct OpenAccounts: Sendable {
    package let url: String
    let pool: AccountPool
    package let store: AccountStore
    /// Whether it is a server, which may become available again, and not a file.
    let isRemote: Bool

    /// Whether another one is the same store, with the same settings.
    func isSame(as other: OpenAccounts?) -> Bool { url == other?.url && pool == other?.pool }

    /// - Parameters:
    ///   - previous: the serving configuration's store; reused if URL and settings are the same.
    ///   - access: whether it may be written to.
    /// - Returns: `nil` without `accounts:`.
    package static func make(
        _ configuration: AccountsConfiguration?, _ services: Services, previous: OpenAccounts?,
        access: StoreAccess = .full
    ) throws(StartError) -> OpenAccounts? {
        guard let configuration else { return nil }
        let text = configuration.url.value
        var pool = AccountPool()
        pool.connections = configuration.pool
        pool.statementTimeout = configuration.statementTimeout
        if let previous, previous.url == text, previous.pool == pool { return previous }
        do throws(AccountError) {
            let parsed = try AccountURL(text)
            let store = try Accounts.open(
                parsed, pool: pool, clock: services.clock, logger: services.logger.with(("component", "accounts")),
                loop: services.loop, resolver: services.resolver, readOnly: access == .readOnly)
            var isRemote = false
            if case .postgresql = parsed { isRemote = true }
            return OpenAccounts(url: text, pool: pool, store: store, isRemote: isRemote)
        } catch {
            throw StartError(error, exit: .configuration)
        }
    }
}
