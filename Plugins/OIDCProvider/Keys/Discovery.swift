internal import MartletConfig
internal import MartletCore
internal import MartletProvider

/// The discovery document of an issuer: fetched at the start, refreshed in the background, kept while the issuer fails.
///
/// A copy in the store serves instances that start while the issuer is unavailable. Concurrent callers share one request.
final class Discovery: Sendable {
    /// How often the document is fetched; with jitter, so that instances do not fetch at the same time.
    private static let interval = Duration.seconds(3600)
    /// The backoff after failures: doubles from the first delay up to a maximum.
    private static let firstRetry = Duration.milliseconds(500)
    private static let longestRetry = Duration.seconds(60)
    private static let longestRetryWithoutDocument = Duration.seconds(5)
    /// How long the store keeps the copy.
    private static let copyLifetime = Duration.seconds(86_400)

    private struct State {
        var document: DiscoveryDocument?
        var obtained: MonotonicTime?
        var fetches = 0
        var failures = 0
        var failuresInARow = 0
        var lastError: OIDCError?
        var dueAt: MonotonicTime?
    }

    /// What is shown of the document.
    struct Status: Sendable {
        let hasDocument: Bool
        let age: Duration?
        let fetches: Int
        let failures: Int
        let lastError: ErrorCode?
        /// What was wrong with the last attempt.
        let lastMessage: String?
    }

    private let issuer: String
    private let context: ProviderContext
    private let timeout: Duration
    private let needsKeys: Bool
    private let onDocument: @Sendable (DiscoveryDocument) async -> Void
    private let state = Lock(State())
    private let fetching = SharedWork()
    private let background = RepeatedWork()

    /// - Parameters:
    ///   - needsKeys: whether a document without `jwks_uri` is of no use.
    ///   - onDocument: called with each document that is fetched or found, one after the other.
    init(
        issuer: String, context: ProviderContext, timeout: Duration, needsKeys: Bool,
        onDocument: @escaping @Sendable (DiscoveryDocument) async -> Void
    ) {
        self.issuer = issuer
        self.context = context
        self.timeout = timeout
        self.needsKeys = needsKeys
        self.onDocument = onDocument
    }

    /// The document; `nil` if there has been none.
    var document: DiscoveryDocument? { state.withLock { $0.document } }

    /// Whether there is no document, and none is looked for before a pause has ended.
    var isPausing: Bool {
        let now = context.clock.monotonicTime
        guard !fetching.isRunning else { return false }
        return state.withLock { $0.document == nil && ($0.dueAt.map { now < $0 } ?? false) }
    }

    var status: Status {
        let now = context.clock.monotonicTime
        return state.withLock { state in
            Status(
                hasDocument: state.document != nil, age: state.obtained.map { now.since($0) }, fetches: state.fetches,
                failures: state.failures, lastError: state.lastError?.code, lastMessage: state.lastError?.message)
        }
    }

    /// The document, after a request if there is none and one is allowed now.
    func resolve() async -> DiscoveryDocument? {
        if let document { return document }
        guard !isPausing else { return nil }
        await refresh()
        return document
    }

    /// Fetches the document and starts refreshing it.
    func start() async {
        await refresh()
        background.start(after: { [weak self] in self?.pause }, { [weak self] in await self?.refresh() })
    }

    /// Stops refreshing.
    func stop() { background.cancel() }

    private var pause: Duration {
        let now = context.clock.monotonicTime
        return state.withLock { max($0.dueAt?.since(now) ?? .zero, Self.firstRetry) }
    }

    /// Joins the request in progress or makes one.
    func refresh() async { await fetching.run { await self.perform() } }

    private func perform() async {
        do throws(OIDCError) {
            let bytes = try await fetch()
            let document = try parse(bytes)
            await adopt(document, fetched: true)
            // Without the copy, an instance that starts while the issuer is unavailable waits for it.
            try? await copies.set(bytes, for: copyKey, lifetime: Self.copyLifetime)
        } catch {
            note(error)
            if document == nil, let copy = await storedCopy() { await adopt(copy, fetched: false) }
        }
    }

    private func adopt(_ document: DiscoveryDocument, fetched: Bool) async {
        await onDocument(document)
        let now = context.clock.monotonicTime
        let hadError = state.withLock { state in
            state.document = document
            guard fetched else { return false }
            state.obtained = now
            state.failuresInARow = 0
            state.dueAt = now + Self.interval * Double.random(in: 0.8...1)
            defer { state.lastError = nil }
            return state.lastError != nil
        }
        if hadError { context.logger.info("issuer discovery recovered", ("issuer", issuer)) }
    }

    private func note(_ error: OIDCError) {
        let now = context.clock.monotonicTime
        let isNew = state.withLock { state in
            state.failures &+= 1
            state.failuresInARow &+= 1
            let longest = state.document == nil ? Self.longestRetryWithoutDocument : Self.longestRetry
            let doubled = Self.firstRetry * (1 << min(state.failuresInARow &- 1, 16))
            state.dueAt = now + min(doubled, longest) * Double.random(in: 0.8...1)
            defer { state.lastError = error }
            return state.lastError?.code != error.code || state.lastError?.message != error.message
        }
        guard isNew else { return }
        context.logger.warning(
            "issuer discovery failed", ("issuer", issuer), ("code", error.code.rawValue), ("reason", error.message))
    }

    private func fetch() async throws(OIDCError) -> [UInt8] {
        state.withLock { $0.fetches &+= 1 }
        let call = HTTPCall(
            DiscoveryDocument.url(of: issuer), headers: IssuerCall.headers, timeout: timeout,
            maximumBytes: DiscoveryDocument.maximumBytes, isRepeatable: true)
        let response: HTTPCallResponse
        do throws(HTTPCallError) { response = try await context.http.send(call) } catch {
            throw .unavailable("discovery_unreachable", "no discovery document: \(error.message) [\(error.code)]")
        }
        guard response.status == 200 else {
            throw .unavailable("discovery_unreachable", "no discovery document: status \(response.status)")
        }
        return response.body
    }

    private func parse(_ bytes: [UInt8]) throws(OIDCError) -> DiscoveryDocument {
        let document = try DiscoveryDocument(bytes, of: issuer)
        guard !needsKeys || document.keysURL != nil else {
            throw .unavailable("discovery_bad_document", "the discovery document has no jwks_uri")
        }
        return document
    }

    private func storedCopy() async -> DiscoveryDocument? {
        guard case .found(let bytes) = await copies.replicatedValue(for: copyKey) else { return nil }
        return try? parse(bytes)
    }

    private var copies: any SharedStoring { context.store.partition(.keys, for: .gateway) }
    private var copyKey: String { context.storeKey("discovery:\(issuer)") }
}

/// What calls to the issuer have in common.
enum IssuerCall {
    static let headers = [(name: "Accept", value: "application/json"), (name: "User-Agent", value: "Martlet")]
}
