internal import MartletAccounts
package import MartletAdmin
internal import MartletConfig
internal import MartletCore
internal import MartletExplain
package import MartletJSON
internal import MartletRedis

extension Gateway {
    /// Explains a request with the running configuration, and the sessions and accounts of the running gateway, which
    /// are only read.
    /// - Returns: `nil` while too many others are being explained.
    package func explanation(of question: ExplanationQuestion) async -> JSONObject? {
        guard explanations.begin() else { return nil }
        defer { explanations.end() }
        let running = graph
        // The sessions of another process could not be found in its memory.
        let isInMemory = running.store.redis == nil
        // What an explanation finds unavailable is in its text, and is no event of the gateway.
        var services = services
        services.logger = .silent
        let built = try? Graph.build(
            running.blueprint, services, previous: nil, keys: IssuerKeysRegistry(),
            invalidator: CacheInvalidator(logger: services.logger), access: .readOnly,
            store: isInMemory ? running.store.readOnlyMemory(services.clock) : nil)
        guard let graph = built else { return nil }
        try? await graph.store.redis?.waitUntilConnected()
        let hasAccounts = await graph.openAccounts()
        let request = ExplainedRequest(
            method: question.method, target: question.target,
            host: question.host ?? addresses.first ?? "localhost", fields: question.fields, token: nil,
            listener: ExplainedListener(of: running.blueprint.configuration.server, scheme: question.scheme))
        let explanation = await RequestExplainer(graph.snapshot, clock: services.clock, hasAccounts: hasAccounts)
            .explain(request)
        await graph.accounts?.store.shutdown()
        if !isInMemory { graph.store.shutdown() }
        let page = ExplanationPage(request, explanation, running.blueprint)
        var document = ExplanationDocument(page).object
        document["text"] = .string(page.text)
        return document
    }
}

extension Graph {
    /// - Returns: whether there can be accounts; false before the gateway has created the tables.
    package func openAccounts() async -> Bool {
        guard let accounts else { return true }
        do throws(AccountError) {
            try await accounts.store.start()
            return true
        } catch {
            return error.code != .accountsSchemaMissing
        }
    }
}

/// Explanations under way: each opens its own connections.
final class ExplanationLimit: Sendable {
    private static let maximum = 2

    private let running = Lock(0)

    func begin() -> Bool {
        running.withLock { running in
            guard running < ExplanationLimit.maximum else { return false }
            running += 1
            return true
        }
    }

    func end() { running.withLock { $0 -= 1 } }
}
