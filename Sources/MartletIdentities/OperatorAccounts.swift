package import MartletAccounts
package import MartletCore
package import MartletJSON
package import MartletProvider
internal import MartletSession

/// The accounts of a running gateway, as operators show, disable and delete them.
package struct OperatorAccounts: Sendable {
    private let accounts: AccountStore
    private let life: IdentityLife
    private let sessions: OperatorSessions
    private let providers: [ProviderHandle]
    private let logger: Logger
    private let outage: @Sendable () -> ErrorCode?

    /// - Parameter outage: why other instances cannot be notified; `nil` if they can.
    package init(
        _ accounts: AccountStore, life: IdentityLife, sessions: OperatorSessions,
        providers: [ProviderHandle], logger: Logger, outage: @escaping @Sendable () -> ErrorCode?
    ) {
        self.accounts = accounts
        self.life = life
        self.sessions = sessions
        self.providers = providers
        self.logger = logger
        self.outage = outage
    }

    /// What is known of a subject; `nil` for an unknown one.
    package func document(of subject: String) async throws(AccountError) -> JSONObject? {
        try await AccountReport(of: subject, in: accounts, sessions: sessions, providers: providers)?.document
    }

    /// Disables or enables the account of a subject; returns when this instance applies it and the others have been
    /// notified.
    /// - Returns: `false` for an unknown subject.
    package func setDisabled(_ subject: String, _ isDisabled: Bool) async throws(AccountError) -> Bool {
        let done = isDisabled ? "disabled" : "enabled"
        return try await change(subject, "account \(done) by an operator") { () async throws(AccountError) in
            try await life.setDisabled(subject, isDisabled, in: accounts)
        }
    }

    /// Begins the deletion of an account; its sessions have ended when this returns.
    /// - Returns: `false` for an unknown subject.
    package func delete(_ subject: String) async throws(AccountError) -> Bool {
        try await change(subject, "account deletion requested by an operator") { () async throws(AccountError) in
            try await life.requestDeletion(of: subject, reason: "operator")
        }
    }

    /// Nothing is changed while the other instances cannot be notified.
    /// - Parameter change: returns whether they have been.
    private func change(
        _ subject: String, _ event: String, _ change: () async throws(AccountError) -> Bool
    ) async throws(AccountError) -> Bool {
        if let code = outage() {
            throw AccountError(code, .unavailable, "the store is unavailable; nothing was changed")
        }
        let isApplied: Bool
        do throws(AccountError) { isApplied = try await change() } catch {
            guard error.kind == .notFound else { throw error }
            return false
        }
        logger.info(event, ("subject", subject))
        guard isApplied else {
            throw AccountError(
                .sessionStoreUnavailable, .unavailable,
                "the account was changed; gateways apply it as soon as the store is available")
        }
        return true
    }
}
