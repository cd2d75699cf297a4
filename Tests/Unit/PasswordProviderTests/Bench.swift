import MartletConfig
import MartletCore
import MartletCrypto
import MartletJSON
import MartletProvider
import MartletTesting

@testable import PasswordProvider

/// A password provider with users and a store in memory, and a clock that a test sets.
struct Bench: Sendable {
    static let alice = "correct horse"
    /// The cheapest hash parameters.
    static let hash = "hash: { memory: 64KiB, iterations: 1 }"
    static let home = ClientNetwork(address: mapped([192, 0, 2, 1]))
    static let elsewhere = ClientNetwork(address: mapped([198, 51, 100, 7]))

    let time = TestTime()
    let store: StoreInMemory
    let users: UsersInMemory
    let pool: ThreadPool
    let provider: PasswordProvider
    let log = LogRecorder()
    /// How often cached results were invalidated.
    let invalidations = Box(0)

    /// - Parameters:
    ///   - yaml: the provider's block, a line each.
    ///   - file: the path of the configuration file.
    ///   - queue: how many hashes may be queued.
    ///   - bound: how they are divided.
    init(
        _ yaml: [String] = [], file: String = "config.yaml", queue: Int = 256, bound: SharedBound = .undivided
    ) throws {
        store = StoreInMemory(clock: time.clock)
        users = UsersInMemory()
        pool = ThreadPool(
            bound, name: "test-hash", threads: 2, queue: queue, niceness: 0, clock: time.clock)
        let services = ProviderContext.Services(
            clock: time.clock, http: ProviderContext.detached("x", clock: time.clock, hasUsers: false).http,
            store: store, hashing: pool, users: users)
        provider = try Self.provider(yaml, file: file, context: Self.makeContext(services, log, invalidations)).get()
        let hash = try PasswordHash.make(Secret(Self.alice), with: provider.parameters)
        users.add(UserRecord(name: "Alice", key: "alice", hash: hash.encoded, isDisabled: false))
    }

    /// The provider of a block, or the errors in it.
    static func provider(
        _ yaml: [String], file: String, context: ProviderContext
    ) -> Result<PasswordProvider, ConfigurationRejected> {
        var diagnostics = Diagnostics()
        let text = (yaml.contains { $0.hasPrefix("hash") } ? yaml : yaml + [hash]).joined(separator: "\n")
        let node = ConfigurationNode.parse(Array(text.utf8), file: file, environment: { _ in nil }, into: &diagnostics)
        let configuration = node?.decode(
            PasswordConfiguration.self, title: "provider 'password'", into: &diagnostics)
        guard let configuration else { return .failure(ConfigurationRejected(diagnostics)) }
        PasswordProvider.validate(configuration, into: &diagnostics)
        guard !diagnostics.hasErrors else { return .failure(ConfigurationRejected(diagnostics)) }
        do {
            return .success(try PasswordProvider(configuration, context: context))
        } catch {
            diagnostics.add(error)
            return .failure(ConfigurationRejected(diagnostics))
        }
    }

    /// The errors and warnings of a block.
    static func diagnostics(_ yaml: [String], file: String = "config.yaml") -> Diagnostics {
        var diagnostics = Diagnostics()
        let text = yaml.joined(separator: "\n")
        let node = ConfigurationNode.parse(Array(text.utf8), file: file, environment: { _ in nil }, into: &diagnostics)
        if let block = node?.decode(PasswordConfiguration.self, title: "provider 'password'", into: &diagnostics) {
            PasswordProvider.validate(block, into: &diagnostics)
        }
        return diagnostics
    }

    /// The errors of an invalid block.
    struct ConfigurationRejected: Error {
        let diagnostics: Diagnostics
        init(_ diagnostics: Diagnostics) { self.diagnostics = diagnostics }
    }

    // MARK: - Calls

    func context(from client: ClientNetwork? = home) -> AuthenticationContext {
        AuthenticationContext(now: time.clock.unixTime, deadline: .never, client: client)
    }

    /// Logs in by a form; returns the error, or `nil` on success.
    @discardableResult
    func logIn(
        _ name: String, _ password: String, from client: ClientNetwork? = home
    ) async -> AuthenticationError? {
        await outcome(name, password, from: client).failure
    }

    func outcome(
        _ name: String, _ password: String, from client: ClientNetwork? = home
    ) async -> Result<Identity, AuthenticationError> {
        let form = SignInForm(
            texts: ["username": Secret(name), "password": Secret(password)], others: [:], isForm: true)
        do {
            return .success(try await provider.signIn(with: form, in: context(from: client)).identity)
        } catch {
            return .failure(error)
        }
    }

    /// Logs in by Basic.
    func basic(_ token: String, from client: ClientNetwork? = home) async -> Result<Identity, AuthenticationError> {
        do {
            return .success(
                try await provider.authenticate(Credential(basic: Array(token.utf8)), in: context(from: client)))
        } catch {
            return .failure(error)
        }
    }

    func change(
        _ subject: String, from current: String, to new: String, at client: ClientNetwork? = home
    ) async -> AuthenticationError? {
        do {
            try await provider.changePassword(
                of: subject, from: Secret(current), to: Secret(new), in: context(from: client))
            return nil
        } catch {
            return error
        }
    }

    private static func mapped(_ address: [UInt8]) -> [UInt8] {
        [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF] + address
    }
}

extension Result {
    var failure: Failure? {
        if case .failure(let error) = self { error } else { nil }
    }

    var success: Success? {
        if case .success(let value) = self { value } else { nil }
    }
}

// MARK: - Services of the provider

/// A clock that a test advances.
struct TestTime: Sendable {
    private let nanoseconds = Box<Int64>(1_000_000_000)

    var clock: Clock {
        Clock(
            unixTime: { [nanoseconds] in UnixTime(seconds: 1_800_000_000 + nanoseconds.value / 1_000_000_000) },
            monotonicTime: { [nanoseconds] in MonotonicTime(nanoseconds: nanoseconds.value) })
    }

    func advance(by span: Duration) { nanoseconds.withLock { $0 += span.wholeNanoseconds } }
}

/// A shared store in memory that can fail and records the requests.
final class StoreInMemory: SharedStoring {
    private let memory: MemoryStore
    let isBroken = Box(false)
    /// The keys of incremented counters, in order.
    let increments = Box<[String]>([])
    let keys = Box<Set<String>>([])
    /// Runs whenever a counter is read by itself.
    let hold = Box<(@Sendable () async -> Void)?>(nil)

    init(clock: Clock) { memory = MemoryStore(clock: clock) }

    private func access(_ key: String) throws(StoreError) {
        keys.withLock { _ = $0.insert(key) }
        if isBroken.value { throw StoreError(code: "store.unavailable", message: "the store is broken") }
    }

    func value(for key: String) async -> StoreReply<[UInt8]> {
        do { try access(key) } catch { return .unavailable(error) }
        return await memory.value(for: key)
    }

    func set(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) {
        try access(key)
        try await memory.set(value, for: key, lifetime: lifetime)
    }

    func setIfAbsent(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) -> Bool {
        try access(key)
        return try await memory.setIfAbsent(value, for: key, lifetime: lifetime)
    }

    func remove(_ key: String, ifEqualTo value: [UInt8]) async throws(StoreError) {
        try access(key)
        try await memory.remove(key, ifEqualTo: value)
    }

    func remove(_ key: String) async throws(StoreError) {
        try access(key)
        try await memory.remove(key)
    }

    func take(_ key: String) async -> StoreReply<[UInt8]> { await memory.take(key) }

    func increment(_ key: String, lifetime: Duration) async throws(StoreError) -> CounterReading {
        try access(key)
        increments.withLock { $0.append(key) }
        return try await memory.increment(key, lifetime: lifetime)
    }

    func decrement(_ key: String) async throws(StoreError) {
        try access(key)
        try await memory.decrement(key)
    }

    func count(_ attempt: CountedAttempt, for owner: WorkOwner) async throws(StoreError) -> AttemptCount {
        var known: [UInt8]?
        if let key = attempt.known, case .found(let value) = await value(for: key) { known = value }
        let bucket = known == nil ? attempt.common : attempt.own ?? attempt.common
        try access(bucket.ban)
        let ban = try await memory.counter(bucket.ban)
        guard ban.count == 0 else {
            return AttemptCount(known: known, ban: ban, attempts: CounterReading(count: 0, remaining: .zero))
        }
        return AttemptCount(
            known: known, ban: ban, attempts: try await increment(bucket.attempts, lifetime: attempt.lifetime))
    }

    func counter(_ key: String) async throws(StoreError) -> CounterReading {
        try access(key)
        await hold.value?()
        return try await memory.counter(key)
    }
}

/// Password users in memory.
final class UsersInMemory: UserRecordStoring {
    private let records = Box<[String: UserRecord]>([:])
    let isBroken = Box(false)
    /// Fails writes only.
    let isReadOnly = Box(false)
    /// Runs right before the next hash is replaced, as a concurrent change by another instance.
    let interference = Box<(@Sendable (UsersInMemory) -> Void)?>(nil)

    func add(_ record: UserRecord) { records.withLock { $0[record.key] = record } }

    subscript(key: String) -> UserRecord? { records.value[key] }

    func setHash(of key: String, _ hash: String, isDisabled: Bool = false) {
        add(UserRecord(name: key, key: key, hash: hash, isDisabled: isDisabled))
    }

    private static let outage = StoreError(code: "accounts.unavailable", message: "the users are unavailable")

    func record(for key: String) async throws(StoreError) -> UserRecord? {
        if isBroken.value { throw Self.outage }
        return records.value[key]
    }

    func replaceHash(of key: String, from old: String, to new: String) async throws(StoreError) -> Bool {
        if isBroken.value || isReadOnly.value { throw Self.outage }
        let interfere = interference.withLock { interference in
            defer { interference = nil }
            return interference
        }
        interfere?(self)
        return records.withLock { records in
            guard let record = records[key], record.hash == old else { return false }
            records[key] = UserRecord(name: record.name, key: key, hash: new, isDisabled: record.isDisabled)
            return true
        }
    }

    func removeRecord(for key: String) async throws(StoreError) -> Bool {
        if isBroken.value { throw Self.outage }
        return records.withLock { $0.removeValue(forKey: key) != nil }
    }
}

extension Bench {
    static func makeContext(
        _ services: ProviderContext.Services, _ log: LogRecorder, _ invalidations: Box<Int>
    ) -> ProviderContext {
        let keys = ProviderContext.detached("x", services: services)
        return ProviderContext(
            name: "password", services: services, logger: Logger(log, minimum: .debug), storeKeyPrefix: "test:",
            makeIssuerKeys: { url, algorithms, _ in keys.issuerKeys(at: url, allowing: algorithms) },
            forget: { invalidations.withLock { $0 += 1 } })
    }
}
