internal import MartletProvider

/// The providers of the configuration, and the keys of their issuers.
final class ProvidersPart: GatewayPart {
    private let starting = BackgroundTask()

    /// Waits until those of the first configuration have been started: no provider is shut down before.
    func waitUntilStarted() async { await starting.value }

    /// Starts them. The start of the gateway does not wait for a slow issuer: only requests whose key is not fetched
    /// yet wait.
    func prepare(_ change: GatewayChange, in gateway: Gateway) async throws(StartError) {
        let providers = change.next.providers
        if change.old == nil {
            starting.start { await Self.start(providers) }
        } else {
            await Self.start(providers)
        }
    }

    /// Shuts providers down, and drops the keys of issuers that only they have used.
    func release(_ graph: Graph?, keeping serving: Graph, in gateway: Gateway) async {
        if let graph { await Self.shutdown(graph.providers) }
        gateway.issuerKeys.retain(only: serving.issuerKeys)
    }

    func abandon(_ graph: Graph?, keeping serving: Graph, in gateway: Gateway) async {
        await release(graph, keeping: serving, in: gateway)
    }

    func finish(in gateway: Gateway) async { starting.cancel() }

    func stop(in gateway: Gateway) async { await Self.shutdown(gateway.graph.providers) }

    /// Starts all of them concurrently; one that cannot reach its issuer starts nevertheless.
    private static func start(_ providers: [ProviderHandle]) async {
        await withTaskGroup(of: Void.self) { group in
            for provider in providers { group.addTask { await provider.running?.start() } }
        }
    }

    private static func shutdown(_ providers: [ProviderHandle]) async {
        for provider in providers { await provider.running?.shutdown() }
    }
}
