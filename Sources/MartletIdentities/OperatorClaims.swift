package import MartletAccounts
package import MartletCore
package import MartletProvider

/// The claims of accounts, as operators show and change them: at a running gateway, and by a command in its stores.
package struct OperatorClaims: Sendable {
    private let accounts: AccountStore
    private let publisher: ClaimPublisher
    private let outage: @Sendable () -> ErrorCode?
    private let logger: Logger

    /// - Parameter outage: why gateways cannot be notified; `nil` if they can.
    package init(
        _ accounts: AccountStore, publisher: ClaimPublisher, logger: Logger,
        outage: @escaping @Sendable () -> ErrorCode?
    ) {
        self.accounts = accounts
        self.publisher = publisher
        self.outage = outage
        self.logger = logger
    }

    /// The claims of an account; `nil` without such an account.
    package func claims(of subject: String) async throws(AccountError) -> AccountClaims? {
        guard try await accounts.account(subject) != nil else { return nil }
        return try await accounts.claims(of: subject).claims
    }

    /// Changes the claims of an account; returns when this instance applies them and the others have been notified.
    /// Repeating it publishes them again.
    ///
    /// Nothing is changed while gateways cannot be notified. Should they become unavailable in between, the change is
    /// made, and the account's next login or refresh publishes it.
    package func change(_ subject: String, by patch: ClaimPatch) async throws(AccountError) {
        if let code = outage() {
            throw AccountError(code, .unavailable, "the store is unavailable; nothing was changed")
        }
        let isChanged = try await accounts.changeClaims(of: subject, by: patch)
        do throws(ClaimPublisher.PublicationError) {
            try await publisher.publish(subject)
        } catch {
            throw AccountError(
                error.code, .unavailable, "the claims were changed, but not all gateways were notified: try again")
        }
        guard isChanged else { return }
        let names = patch.names.joined(separator: " ")
        logger.info("claims of an account changed", ("subject", subject), ("claims", names))
    }
}
