import MartletConfig
import MartletCore
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

@testable import MartletResponder
@testable import MartletSignIn

/// The endpoints with scripted stores and providers.
struct Stand {
    /// A response and its cause.
    struct Reply {
        let response: LocalResponse

        var status: Int { response.status }
        /// A failure's code for the client.
        var code: String? { response.failure.map { "\($0.code)" } }
        /// A failure's code in the log.
        var reason: String? { response.failure?.reason.rawValue }
        /// `401 credential_invalid session.unknown`, `200`.
        var summary: String { [String(status), code, reason].compactMap { $0 }.joined(separator: " ") }

        var object: JSONObject {
            let limits = JSONLimits(maximumDepth: 32, maximumBytes: 1 << 20)
            return (try? JSON.parse(response.body, limits: limits).object) ?? [:]
        }

        subscript(name: String) -> String? { object[name]?.string }

        func field(_ name: String) -> String? {
            response.fields.first { $0.name.lowercased() == name.lowercased() }?.value
        }
    }

    static let json = "application/json"
    static let form = "application/x-www-form-urlencoded"

    let time: ManualTime
    let apple: ScriptedProvider
    let password: ScriptedProvider
    let accounts = ScriptedAccounts()
    let sessions: ScriptedSessions
    let store: ScriptedStore
    let lines = LogRecorder()
    let invalidations = Box(0)
    let endpoints: SignInEndpoints

    /// - Parameter clock: of the store, too; `nil` is ``time``.
    init(
        hasAccounts: Bool = true, time: ManualTime = ManualTime(), clock: Clock? = nil,
        _ change: (inout SignInSetup) -> Void = { _ in }
    ) {
        self.time = time
        let clock = clock ?? time.clock
        apple = ScriptedProvider(clock: clock)
        password = ScriptedProvider(clock: clock)
        sessions = ScriptedSessions(clock: clock)
        store = ScriptedStore(MemoryStore(clock: clock))
        var setup = SignInSetup(
            providers: [
                ProviderHandle(apple, name: "apple"), ProviderHandle(password, name: "password"),
                ProviderHandle(BearerOnlyProvider(), name: "bearer"),
            ],
            sessions: sessions, accounts: hasAccounts ? accounts : nil, store: store, storeKeyPrefix: "martlet:",
            configuration: SessionsConfiguration(), wellKnown: WellKnownConfiguration(), keySet: nil, clock: clock,
            logger: Logger(lines, minimum: .debug),
            invalidateDecisions: { [invalidations] _ in invalidations.withLock { $0 += 1 } })
        change(&setup)
        endpoints = SignInEndpoints(setup)
    }

    /// Sends a request.
    /// - Parameters:
    ///   - bearer: a token for `Authorization`.
    ///   - fields: further header fields.
    ///   - network: the client's network.
    func send(
        _ method: String, _ target: String, bearer: String? = nil, type: String? = nil, _ body: [UInt8] = [],
        fields: [(name: String, value: String)] = [],
        from network: ClientNetwork? = ClientNetwork(address: [UInt8](repeating: 0, count: 16))
    ) async -> Reply {
        var fields = fields
        if let bearer { fields.append(("Authorization", "Bearer \(bearer)")) }
        if let type { fields.append(("content-type", type)) }
        let parts = target.split(separator: "?", maxSplits: 1).map(String.init)
        let request = LocalRequest(
            method: method, path: parts[0], query: parts.count > 1 ? parts[1] : "", fields: fields, body: body,
            bodyBytes: body.count, client: "127.0.0.1",
            network: network, requestID: "r1")
        let reply = Reply(response: await endpoints.handle(request))
        // The description is for programs.
        let isNavigation = fields.contains { $0.name == "Sec-Fetch-Mode" && $0.value == "navigate" }
        for finding in isNavigation ? [] : findings(method, parts[0], reply) { Issue.record("\(finding)") }
        return reply
    }

    private static let described = APIDescription(OpenAPI.document(path: "/auth"))

    /// Checks a response against the description; the bodies of failures are written elsewhere and not checked here.
    private func findings(_ method: String, _ path: String, _ reply: Reply) -> [String] {
        guard endpoints.setup.configuration.path == "/auth" else { return [] }
        var fields = reply.response.fields
        if let failure = reply.response.failure {
            if failure.challengeText != nil { fields.append(("WWW-Authenticate", "")) }
            if failure.retryAfter > 0 { fields.append(("Retry-After", String(failure.retryAfter))) }
        }
        let body = reply.response.failure == nil ? reply.response.body : nil
        return Self.described.findings(method, path, .init(status: reply.status, fields: fields, body: body))
    }

    /// Posts JSON.
    func post(_ target: String, bearer: String? = nil, _ body: String) async -> Reply {
        await send("POST", target, bearer: bearer, type: Self.json, Array(body.utf8))
    }

    /// Logs a user in and returns the access token.
    func login(_ provider: String, _ person: String) async throws -> String {
        let reply = await post("/auth/login/\(provider)", #"{"proof":"\#(person)"}"#)
        guard let token = reply["access_token"] else { throw TestFailure("no login: \(reply.summary)") }
        return token
    }
}

/// A store that can become unavailable.
final class ScriptedStore: SharedStoring {
    private let store: any SharedStoring
    private let outageFlag: Box<Bool>
    private let written: Box<Int>

    init(_ store: MemoryStore) { (self.store, outageFlag, written) = (store, Box(false), Box(0)) }

    private init(_ other: ScriptedStore, _ store: any SharedStoring) {
        (self.store, outageFlag, written) = (store, other.outageFlag, other.written)
    }

    func partition(_ purpose: StorePurpose, for owner: WorkOwner) -> any SharedStoring {
        ScriptedStore(self, store.partition(purpose, for: owner))
    }

    /// How often something was written.
    var writes: Int { written.value }

    var isUnavailable: Bool {
        get { outageFlag.value }
        set { outageFlag.withLock { $0 = newValue } }
    }

    private static let outage = StoreError(code: "store.unavailable", message: "")

    private func check() throws(StoreError) { if isUnavailable { throw Self.outage } }

    private func checkWrite() throws(StoreError) {
        try check()
        written.withLock { $0 += 1 }
    }

    func value(for key: String) async -> StoreReply<[UInt8]> {
        isUnavailable ? .unavailable(Self.outage) : await store.value(for: key)
    }

    func set(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) {
        try checkWrite()
        try await store.set(value, for: key, lifetime: lifetime)
    }

    func setIfAbsent(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) -> Bool {
        try checkWrite()
        return try await store.setIfAbsent(value, for: key, lifetime: lifetime)
    }

    func remove(_ key: String, ifEqualTo value: [UInt8]) async throws(StoreError) {
        try check()
        try await store.remove(key, ifEqualTo: value)
    }

    func remove(_ key: String) async throws(StoreError) {
        try check()
        try await store.remove(key)
    }

    func take(_ key: String) async -> StoreReply<[UInt8]> {
        isUnavailable ? .unavailable(Self.outage) : await store.take(key)
    }

    func increment(_ key: String, lifetime: Duration) async throws(StoreError) -> CounterReading {
        try checkWrite()
        return try await store.increment(key, lifetime: lifetime)
    }

    func counter(_ key: String) async throws(StoreError) -> CounterReading {
        try check()
        return try await store.counter(key)
    }
}
