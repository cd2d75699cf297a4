internal import MartletAccounts
internal import MartletAdmin
internal import MartletCore
internal import MartletIdentities
internal import MartletProvider
internal import MartletRedis
internal import MartletSession

/// The claims of accounts, for the admin listener of a running gateway.
struct ClaimAdministration: ClaimAdministering {
    let accounts: AccountStore
    let publisher: ClaimPublisher
    let store: SharedStore
    let logger: Logger

    func claims(of subject: String) async throws(AccountError) -> AccountClaims? {
        guard try await accounts.account(subject) != nil else { return nil }
        return try await accounts.claims(of: subject).claims
    }

    /// Nothing is changed while the other instances cannot be notified.
    func changeClaims(of subject: String, by patch: ClaimPatch) async throws(AccountError) {
        if let redis = store.redis, redis.status.state != .connected {
            throw AccountError(
                .sessionStoreUnavailable, .unavailable, "the store is unavailable; nothing was changed")
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
