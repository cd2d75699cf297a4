internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletIdentities
internal import MartletRedis
internal import MartletServer
internal import MartletSession

/// Makes running gateways apply the claims of an account, for a command that has changed them.
struct ClaimPublication: Sendable {
    /// Why the store of the sessions is not available; `nil` if it is.
    let outage: @Sendable () -> ErrorCode?
    let publish: @Sendable (_ subject: String) async throws(ClaimPublisher.PublicationError) -> Void

    init(
        outage: @escaping @Sendable () -> ErrorCode?,
        publish: @escaping @Sendable (_ subject: String) async throws(ClaimPublisher.PublicationError) -> Void
    ) {
        self.outage = outage
        self.publish = publish
    }

    /// Publishes to the gateways that share a store.
    init(
        in store: SharedStore, _ accounts: any AccountStoring, _ blueprint: Blueprint, _ services: Services
    ) {
        let sessions = SessionStore(
            policy: SessionPolicy(blueprint.configuration.sessions), backend: store.sessions, clock: services.clock,
            readsClaims: true, seal: store.seal, onRevoked: { _ in }, onChanged: { _ in })
        let publisher = ClaimPublisher(accounts: accounts, sessions: sessions) {
            await store.notifyOthersOfChange($0, isDisabled: $1)
        }
        self.init(
            outage: { store.redis?.status.state == .connected ? nil : .sessionStoreUnavailable },
            publish: { subject throws(ClaimPublisher.PublicationError) in try await publisher.publish(subject) })
    }
}
