package import MartletAccounts
package import MartletConfig
internal import MartletCore

/// The account store of a configuration; reused by reloads that do not change `accounts:`.
package struct OpenAccounts: Sendable {
    package let url: String
    package let store: any AccountDatabase
    /// Whether it is a server, which may become available again, and not a file.
    let isRemote: Bool

    /// - Parameters:
    ///   - previous: the serving configuration's store; reused if the URL is the same.
    ///   - access: whether it may be written to.
    /// - Returns: `nil` without `accounts:`.
    package static func make(
        _ configuration: AccountsConfiguration?, _ services: Services, previous: OpenAccounts?,
        access: StoreAccess = .full
    ) throws(StartError) -> OpenAccounts? {
        guard let text = configuration?.url.value else { return nil }
        if let previous, previous.url == text { return previous }
        do throws(AccountError) {
            let parsed = try AccountURL(text)
            let store = try Accounts.open(
                parsed, clock: services.clock, logger: services.logger.with(("room", "accounts")),
                loop: services.loop, resolver: services.resolver, readOnly: access == .readOnly)
            var isRemote = false
            if case .postgresql = parsed { isRemote = true }
            return OpenAccounts(url: text, store: store, isRemote: isRemote)
        } catch {
            throw StartError(code: error.code, message: error.message, exit: .configuration)
        }
    }
}
