internal import MartletAccounts
internal import MartletConfig
internal import MartletCore
internal import MartletIdentities
internal import MartletRedis

struct StorePart: GatewayPart {
    /// Waits for the first connection, so that the first requests find it.
    ///
    /// Under `on_error: deny` no session works without the store, so the start fails if the store rejects our
    /// credentials: only a change of the configuration or of the server helps. An unreachable store fails neither a
    /// start nor a reload: the connection is retried.
    func prepare(_ change: GatewayChange, in gateway: Gateway) async throws(StartError) {
        guard let redis = change.next.store.redis, change.next.store !== change.old?.store else { return }
        do throws(StoreError) {
            try await redis.waitUntilConnected()
        } catch {
            guard change.old == nil, change.configuration.store.onError == .deny, error.isAccessDenied else { return }
            throw StartError(
                code: error.code, message: "store rejected the connection: \(error.message)", exit: .unavailable)
        }
    }

    func abandon(_ graph: Graph?, keeping serving: Graph, in gateway: Gateway) async {
        if let graph, graph.store !== serving.store { graph.store.shutdown() }
    }

    func stop(in gateway: Gateway) async { gateway.graph.store.shutdown() }
}

struct AccountsPart: GatewayPart {
    /// Opens it, and checks that it has no grants of a key that is missing.
    ///
    /// A file that cannot be opened fails the start. An unavailable database server does not: sessions work without it,
    /// and the connection is retried.
    func prepare(_ change: GatewayChange, in gateway: Gateway) async throws(StartError) {
        let keys = change.next.blueprint.grantKeys
        guard let accounts = change.next.accounts,
            !change.keepsAccounts || keys?.ids != change.old?.blueprint.grantKeys?.ids
        else { return }
        do throws(AccountError) {
            if !change.keepsAccounts { try await accounts.store.start() }
            let life = accounts.store.life
            if let keys { try await keys.verify(in: life) } else { try await GrantKeys.verifyNone(in: life) }
        } catch {
            if error.code == .accountsKeyMissing { throw StartError(error, exit: .configuration) }
            guard accounts.isRemote else { throw StartError(error, exit: .unavailable) }
            // The store has logged its own outages.
            if error.kind != .unavailable {
                gateway.services.logger.error(
                    "account store unavailable", ("code", "\(error.code)"), ("reason", error.message))
            }
        }
    }

    func abandon(_ graph: Graph?, keeping serving: Graph, in gateway: Gateway) async {
        if graph?.accounts?.isSame(as: serving.accounts) == false { await graph?.accounts?.store.shutdown() }
    }

    func stop(in gateway: Gateway) async { await gateway.graph.accounts?.store.shutdown() }
}
