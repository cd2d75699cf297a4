package import MartletAccounts
package import MartletCore
package import MartletProvider

/// Recognizes users who were exported to another team of developers when that team's credential names them, and gives
/// their identity its new subject.
package struct TransferredIdentities: Sendable {
    private let accounts: any AccountStoring
    private let store: IdentityTransferStore
    /// By the name of the provider.
    private let providers: [String: any Transferring]
    private let clock: Clock
    private let logger: Logger

    /// - Returns: `nil` if no provider recognizes transfers.
    package init?(
        _ accounts: any AccountStoring, _ store: IdentityTransferStore, providers: [ProviderHandle], clock: Clock,
        logger: Logger
    ) {
        let recognizing = providers.compactMap { handle in
            handle.transferring.flatMap { $0.recognizesTransfers ? (handle.name, $0) : nil }
        }
        guard !recognizing.isEmpty else { return nil }
        self.providers = Dictionary(recognizing) { first, _ in first }
        self.accounts = accounts
        self.store = store
        self.clock = clock
        self.logger = logger
    }

    /// Re-keys the identity that a credential names, unless its subject is known. To be called before its account is
    /// looked up.
    package func follow(_ identity: Identity, provider: String) async throws(AccountError) {
        guard let transfer = providers[provider]?.transfer(of: identity, at: clock.unixTime) else { return }
        let subject = identity.providerSubject
        let known = AccountIdentity(provider: provider, subjects: [subject])
        guard try await accounts.find(known) == nil else { return }
        let outcome = try await store.rekey(transfer, of: provider, to: subject, at: clock.unixMilliseconds)
        switch outcome {
        case .rekeyed(let account):
            logger.info("identity transferred", ("provider", provider), ("subject", account))
        case .alreadyDone, .conflict: break
        case .unknown, .deleted:
            logger.warning(
                "transfer not recognized", ("provider", provider), ("reason", "\(outcome)"),
                ("from_team", transfer.fromTeam), ("to_team", transfer.toTeam))
        }
    }
}
