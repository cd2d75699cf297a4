import MartletConfig
import MartletCore
import MartletCrypto
import MartletJSON
import MartletProvider
import MartletTesting

@testable import PasswordProvider

/// A password provider over users and a store in memory, at a time that a test sets.
struct Bench: Sendable {
    static let alice = "correct horse"
    /// What tests hash with: as little as there is.
    static let hash = "hash: { memory: 64KiB, iterations: 1 }"
    static let home = ClientNetwork(address: mapped([192, 0, 2, 1]))
    static let elsewhere = ClientNetwork(address: mapped([198, 51, 100, 7]))

    let time = TestTime()
    let store: StoreInMemory
    let users: UsersInMemory
    let pool: WorkPool
    let provider: PasswordProvider
    let log = LogInMemory()
    /// How often cached verdicts were dropped.
    let forgotten = Box(0)

    /// - Parameters:
    ///   - yaml: the provider's block, a line each.
    ///   - file: where the block is said to stand.
    ///   - queue: how many hashes may wait.
    ///   - perNetwork: how many of one network.
    init(_ yaml: [String] = [], file: String = "config.yaml", queue: Int = 256, perNetwork: Int? = nil) throws {
        store = StoreInMemory(clock: time.clock)
        users = UsersInMemory()
        pool = WorkPool(
            name: "test-hash", threads: 2, queue: queue, perMember: perNetwork, niceness: 0, clock: time.clock)
        let services = ProviderContext.Services(
            clock: time.clock, http: ProviderContext.detached("x", clock: time.clock, hasUsers: false).http,
            store: store, hashing: pool, users: users)
        provider = try Self.provider(yaml, file: file, context: Self.makeContext(services, log, forgotten)).get()
        let hash = try PasswordHash.make(Secret(Self.alice), with: provider.parameters)
        users.add(UserRecord(name: "Alice", key: "alice", hash: hash.encoded, isDisabled: false))
    }

    /// A provider of a block, or what is wrong with it.
    static func provider(
        _ yaml: [String], file: String, context: ProviderContext
    ) -> Result<PasswordProvider, Refused> {
        var diagnostics = Diagnostics()
        let text = (yaml.contains { $0.hasPrefix("hash") } ? yaml : yaml + [hash]).joined(separator: "\n")
        let node = ConfigurationNode.parse(Array(text.utf8), file: file, environment: { _ in nil }, into: &diagnostics)
        let configuration = node?.decode(
            PasswordConfiguration.self, title: "provider 'password'", into: &diagnostics)
        guard let configuration else { return .failure(Refused(diagnostics)) }
        PasswordProvider.validate(configuration, into: &diagnostics)
        guard !diagnostics.hasErrors else { return .failure(Refused(diagnostics)) }
        do {
            return .success(try PasswordProvider(configuration, context: context))
        } catch {
            diagnostics.add(error)
            return .failure(Refused(diagnostics))
        }
    }

    /// What is wrong, or doubtful, with a block.
    static func diagnostics(_ yaml: [String], file: String = "config.yaml") -> Diagnostics {
        var diagnostics = Diagnostics()
        let text = yaml.joined(separator: "\n")
        let node = ConfigurationNode.parse(Array(text.utf8), file: file, environment: { _ in nil }, into: &diagnostics)
        if let block = node?.decode(PasswordConfiguration.self, title: "provider 'password'", into: &diagnostics) {
            PasswordProvider.validate(block, into: &diagnostics)
        }
        return diagnostics
    }

    /// A block that was refused.
    struct Refused: Error {
        let diagnostics: Diagnostics
        init(_ diagnostics: Diagnostics) { self.diagnostics = diagnostics }
    }

    // MARK: - Calls

    func context(from client: ClientNetwork? = home) -> AuthenticationContext {
        AuthenticationContext(now: time.clock.unixTime, deadline: .never, client: client)
    }

    /// Logs in by a form; answers the error, `nil` when it went well.
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

// MARK: - What the provider stands on

/// A clock that a test moves.
struct TestTime: Sendable {
    private let nanoseconds = Box<Int64>(1_000_000_000)

    var clock: Clock {
        Clock(
            unixTime: { [nanoseconds] in UnixTime(seconds: 1_800_000_000 + nanoseconds.value / 1_000_000_000) },
            monotonicTime: { [nanoseconds] in MonotonicTime(nanoseconds: nanoseconds.value) })
    }

    func advance(by span: Duration) { nanoseconds.withLock { $0 += span.wholeNanoseconds } }
}

/// A shared store in memory that can be broken and remembers what it was asked.
final class StoreInMemory: SharedStoring {
    private let memory: MemoryStore
    let isBroken = Box(false)
    /// Keys of counters, as they were incremented.
    let increments = Box<[String]>([])
    let keys = Box<Set<String>>([])
    /// Happens whenever a counter is read.
    let hold = Box<(@Sendable () async -> Void)?>(nil)

    init(clock: Clock) { memory = MemoryStore(clock: clock) }

    private func look(_ key: String) throws(StoreError) {
        keys.withLock { _ = $0.insert(key) }
        if isBroken.value { throw StoreError(code: "store.unavailable", message: "the store is broken") }
    }

    func value(for key: String) async -> StoreAnswer<[UInt8]> {
        do { try look(key) } catch { return .unavailable(error) }
        return await memory.value(for: key)
    }

    func set(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) {
        try look(key)
        try await memory.set(value, for: key, lifetime: lifetime)
    }

    func setIfAbsent(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) -> Bool {
        try look(key)
        return try await memory.setIfAbsent(value, for: key, lifetime: lifetime)
    }

    func remove(_ key: String, ifEqualTo value: [UInt8]) async throws(StoreError) {
        try look(key)
        try await memory.remove(key, ifEqualTo: value)
    }

    func remove(_ key: String) async throws(StoreError) {
        try look(key)
        try await memory.remove(key)
    }

    func take(_ key: String) async -> StoreAnswer<[UInt8]> { await memory.take(key) }

    func increment(_ key: String, lifetime: Duration) async throws(StoreError) -> CounterReading {
        try look(key)
        increments.withLock { $0.append(key) }
        return try await memory.increment(key, lifetime: lifetime)
    }

    func decrement(_ key: String) async throws(StoreError) {
        try look(key)
        try await memory.decrement(key)
    }

    func counter(_ key: String) async throws(StoreError) -> CounterReading {
        try look(key)
        await hold.value?()
        return try await memory.counter(key)
    }
}

/// Password users in memory.
final class UsersInMemory: UserRecordStoring {
    private let records = Box<[String: UserRecord]>([:])
    let isBroken = Box(false)
    /// Fails writes alone.
    let isReadOnly = Box(false)
    /// What happens right before the next hash is replaced, as another instance's doing.
    let interference = Box<(@Sendable (UsersInMemory) -> Void)?>(nil)

    func add(_ record: UserRecord) { records.withLock { $0[record.key] = record } }

    subscript(key: String) -> UserRecord? { records.value[key] }

    func setHash(of key: String, _ hash: String, isDisabled: Bool = false) {
        add(UserRecord(name: key, key: key, hash: hash, isDisabled: isDisabled))
    }

    private static let outage = StoreError(code: "accounts.unavailable", message: "the users are away")

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

/// The lines that were logged.
final class LogInMemory: LogWriting {
    let lines = Box<[String]>([])

    func write(_ level: LogLevel, _ event: String, _ fields: [(String, String)]) {
        let line = ([level.name, event] + fields.map { "\($0)=\($1)" }).joined(separator: " ")
        lines.withLock { $0.append(line) }
    }
}

extension Bench {
    static func makeContext(
        _ services: ProviderContext.Services, _ log: LogInMemory, _ forgotten: Box<Int>
    ) -> ProviderContext {
        let keys = ProviderContext.detached("x", services: services)
        return ProviderContext(
            name: "password", services: services, logger: Logger(log, minimum: .debug), storeKeyPrefix: "test:",
            makeIssuerKeys: { url, algorithms, _ in keys.issuerKeys(at: url, allowing: algorithms) },
            forget: { forgotten.withLock { $0 += 1 } })
    }
}
