import MartletConfig
import MartletCore
import MartletCrypto
import MartletProvider
import MartletTesting
import Testing

@testable import WeChatProvider

/// A provider with a scripted WeChat and a clock that advances only when code sleeps.
struct Bench {
    static let now: Int64 = 1_700_000_000
    static let secret = "planted-app-secret"
    static let mobile = "wx0000000000000001"
    static let website = "wx0000000000000002"
    static let account = "wx0000000000000003"
    static let mini = "wx0000000000000004"

    static let allApps = """
        apps:
          ios: { variant: mobile, app_id: \(mobile), app_secret: \(secret)-1 }
          web: { variant: website, app_id: \(website), app_secret: \(secret)-2 }
          page: { variant: official_account, app_id: \(account), app_secret: \(secret)-3 }
          mini: { variant: mini_program, app_id: \(mini), app_secret: \(secret)-4 }
        """

    let provider: WeChatProvider
    let weChat: ScriptedWeChat
    let time: Time
    let store: any SharedStoring
    let log = LogRecorder()

    /// - Parameters:
    ///   - lines: further lines of the provider's block.
    ///   - store: the store shared with another instance, if there is one.
    ///   - name: the provider's name.
    init(
        _ lines: String = "", apps: String = allApps, weChat: ScriptedWeChat = ScriptedWeChat(), time: Time = Time(),
        store: (any SharedStoring)? = nil, name: String = "wechat"
    ) throws {
        let configuration = try Self.configuration("\(apps)\n\(lines)")
        let store = store ?? MemoryStore(clock: time.clock)
        let services = ProviderContext.Services.detached(clock: time.clock, hasUsers: false)
        let context = ProviderContext(
            name: name,
            services: ProviderContext.Services(
                clock: time.clock, http: weChat, store: store, hashing: services.hashing, users: nil),
            logger: Logger(log, minimum: .debug), storeKeyPrefix: "test:",
            makeIssuerKeys: { url, algorithms, _ in
                ProviderContext.detached("wechat", services: services).issuerKeys(at: url, allowing: algorithms)
            }, forget: {})
        provider = WeChatProvider(configuration, context: context, sleep: time.sleep)
        (self.weChat, self.time, self.store) = (weChat, time, store)
    }

    /// The configuration of a block.
    static func configuration(_ block: String) throws -> WeChatConfiguration {
        var diagnostics = Diagnostics()
        let node = ConfigurationNode.parse(
            Array(block.utf8), file: "config.yaml", environment: { _ in nil }, into: &diagnostics)
        let decoded = node?.decode(WeChatConfiguration.self, title: "provider 'wechat'", into: &diagnostics)
        if let decoded { WeChatProvider.validate(decoded, into: &diagnostics) }
        guard let decoded, !diagnostics.hasErrors else { throw ConfigurationRejected(diagnostics: diagnostics) }
        return decoded
    }

    struct ConfigurationRejected: Error, CustomStringConvertible {
        let diagnostics: Diagnostics

        var description: String { diagnostics.description }
    }

    // MARK: - Logins

    static func form(_ members: [String: String]) -> SignInForm {
        SignInForm(texts: members.mapValues { Secret($0) }, others: [:], isForm: false)
    }

    var login: AuthenticationContext { context(.login, from: Self.home) }

    /// The network that logins come from.
    static let home = ClientNetwork(address: [0x20, 0x01, 0x0D, 0xB8] + [UInt8](repeating: 0, count: 12))

    func context(_ purpose: AuthenticationContext.Purpose, from network: ClientNetwork?) -> AuthenticationContext {
        AuthenticationContext(
            now: time.clock.unixTime, deadline: time.clock.monotonicTime + .seconds(10), client: network,
            purpose: purpose)
    }

    func signIn(
        _ app: String, _ code: String, _ more: [String: String] = [:]
    ) async throws(AuthenticationError)
        -> SignIn
    {
        try await signIn(Self.form(more.merging(["app": app, "code": code]) { $1 }))
    }

    func signIn(_ form: SignInForm) async throws(AuthenticationError) -> SignIn {
        try await provider.signIn(with: form, in: login)
    }

    /// The error of a login; `nil` when it succeeds.
    func failure(_ app: String, _ code: String, _ more: [String: String] = [:]) async -> AuthenticationError? {
        do { _ = try await signIn(app, code, more) } catch { return error }
        return nil
    }
}

/// Responds as scripted and records the calls.
final class ScriptedWeChat: HTTPCalling {
    enum Reply: Sendable {
        case json(String)
        case raw(Int, [UInt8])
        case failure(ErrorCode)
    }

    private let replies = Box<[String: Reply]>([:])
    private let recorded = Box<[HTTPCall]>([])
    private let gate = Box<(@Sendable () async -> Void)?>(nil)
    private let full = Box(false)

    /// Sets the response of a path.
    func respond(_ path: String, _ reply: Reply) { replies.withLock { $0[path] = reply } }

    /// Sets what runs before each further response.
    func hold(_ body: @escaping @Sendable () async -> Void) { gate.withLock { $0 = body } }

    /// Whether there is no capacity for calls.
    var isFull: Bool {
        get { full.value }
        set { full.withLock { $0 = newValue } }
    }

    func reserve(within limit: Duration) async throws(HTTPCallError) -> any HTTPCalling {
        guard !isFull else { throw HTTPCallError(code: "fetch.overloaded", message: "scripted") }
        return self
    }

    var calls: [HTTPCall] { recorded.value }
    /// The requested paths, in order.
    var paths: [String] { calls.map { Self.path(of: $0.url) } }

    func send(_ call: HTTPCall) async throws(HTTPCallError) -> HTTPCallResponse {
        recorded.withLock { $0.append(call) }
        await gate.value?()
        switch replies.value[Self.path(of: call.url)] {
        case .json(let text): return HTTPCallResponse(status: 200, body: Array(text.utf8))
        case .raw(let status, let body): return HTTPCallResponse(status: status, body: body)
        case .failure(let code): throw HTTPCallError(code: code, message: "scripted")
        case nil: throw HTTPCallError(code: "fetch.unreachable", message: "nothing is scripted")
        }
    }

    static func path(of url: String) -> String {
        let rest = url.split(separator: "?", maxSplits: 1)[0]
        return rest.split(separator: "/").dropFirst(2).map { "/\($0)" }.joined()
    }

    /// The query's parameters, still encoded.
    static func parameters(of call: HTTPCall) -> [String: String] {
        let query = call.url.split(separator: "?", maxSplits: 1).last ?? ""
        let pairs = query.split(separator: "&").map { $0.split(separator: "=", omittingEmptySubsequences: false) }
        return Dictionary(uniqueKeysWithValues: pairs.map { (String($0[0]), String($0[1])) })
    }
}

/// A clock that advances only when code sleeps or a test advances it.
final class Time: Sendable {
    private let passed = Box<Int64>(1)

    var clock: Clock {
        Clock(
            unixTime: { [passed] in UnixTime(seconds: Bench.now + passed.value / 1_000_000_000) },
            monotonicTime: { [passed] in MonotonicTime(nanoseconds: passed.value) })
    }

    func advance(_ span: Duration) { passed.withLock { $0 += span.wholeNanoseconds } }

    @Sendable func sleep(_ span: Duration) async {
        advance(span)
        await Task.yield()
    }
}

/// A store that is unavailable.
struct BrokenStore: SharedStoring {
    static let outage = StoreError(code: "store.down", message: "down")

    func value(for key: String) async -> StoreReply<[UInt8]> { .unavailable(Self.outage) }
    func set(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) { throw Self.outage }
    func setIfAbsent(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) -> Bool {
        throw Self.outage
    }
    func remove(_ key: String, ifEqualTo value: [UInt8]) async throws(StoreError) { throw Self.outage }
    func remove(_ key: String) async throws(StoreError) { throw Self.outage }
    func take(_ key: String) async -> StoreReply<[UInt8]> { .unavailable(Self.outage) }
    func increment(_ key: String, lifetime: Duration) async throws(StoreError) -> CounterReading {
        throw Self.outage
    }
    func counter(_ key: String) async throws(StoreError) -> CounterReading { throw Self.outage }
}
