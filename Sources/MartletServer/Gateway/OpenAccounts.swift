internal import MartletAccounts
internal import MartletConfig
internal import MartletCore

/// The account store of a configuration; it outlives reloads that leave `accounts:` as it is.
struct OpenAccounts: Sendable {
    let url: String
    let store: any AccountStoring
    /// A server, which may come back, and not a file.
    let isRemote: Bool

    /// - Parameters:
    ///   - previous: what serves now; used on where the URL is the same.
    ///   - access: what is done with it.
    /// - Returns: `nil` without `accounts:`.
    static func make(
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
