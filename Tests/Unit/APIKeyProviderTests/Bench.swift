import MartletConfig
import MartletCore
import MartletJSON
import MartletProvider
import MartletTesting

@testable import APIKeyProvider

/// A clock that a test sets.
struct TestTime: Sendable {
    let unix = Box<Int64>(1_800_000_000)
    let monotonic = Box<Int64>(0)

    var clock: Clock {
        Clock(
            unixTime: { [unix] in UnixTime(seconds: unix.value) },
            monotonicTime: { [monotonic] in MonotonicTime(nanoseconds: monotonic.value) })
    }

    var now: UnixTime { clock.unixTime }

    func pass(_ seconds: Int64) {
        unix.withLock { $0 += seconds }
        monotonic.withLock { $0 += seconds * 1_000_000_000 }
    }
}

/// A provider of API keys with a clock that a test sets.
struct Bench: Sendable {
    let time: TestTime
    let store: KeysInMemory
    let provider: APIKeyProvider
    let log = LogRecorder()
    /// The subjects about which decisions were invalidated; `*` for all.
    let invalidated = Box<[String]>([])

    /// - Parameter yaml: the provider's block, a line each.
    init(_ yaml: [String] = ["max_stale: 30s"], hasAccounts: Bool = true, time: TestTime = TestTime()) throws {
        self.time = time
        store = KeysInMemory()
        let detached = ProviderContext.Services.detached(clock: time.clock, hasUsers: hasAccounts)
        let services = ProviderContext.Services(
            clock: time.clock, http: detached.http, store: detached.store, hashing: detached.hashing,
            users: detached.users, keys: hasAccounts ? store : nil)
        let keys = ProviderContext.detached("x", services: services)
        let context = ProviderContext(
            name: "partners", services: services, logger: Logger(log, minimum: .debug), storeKeyPrefix: "test:",
            makeIssuerKeys: { url, algorithms, _ in keys.issuerKeys(at: url, allowing: algorithms) },
            forget: { [invalidated] in invalidated.withLock { $0.append("*") } },
            forgetSubjects: { [invalidated] subjects in invalidated.withLock { $0 += subjects } })
        var diagnostics = Diagnostics()
        guard let configuration = Self.configuration(yaml, into: &diagnostics) else {
            throw TestFailure("\(diagnostics)")
        }
        provider = try APIKeyProvider(configuration, context: context)
    }

    static func configuration(_ yaml: [String], into diagnostics: inout Diagnostics) -> APIKeyConfiguration? {
        let text = yaml.joined(separator: "\n")
        let node = ConfigurationNode.parse(
            Array(text.utf8), file: "/etc/martlet/config.yaml", environment: { _ in nil }, into: &diagnostics)
        guard
            let configuration = node?.decode(
                APIKeyConfiguration.self, title: "provider 'partners'", into: &diagnostics)
        else { return nil }
        APIKeyProvider.validate(configuration, into: &diagnostics)
        return configuration
    }

    func issue(
        _ subject: String = "billing", isAccount: Bool = false, expiresAt: UnixTime? = nil
    ) async throws -> (record: APIKeyRecord, text: String) {
        let request = APIKeyRequest(
            subject: subject, isAccount: isAccount, claims: ["role": "partner"], scopes: ["read", "write"],
            expiresAt: expiresAt)
        let issued = try await provider.issue(request)
        return (issued.record, text(of: issued.key))
    }

    func text(of key: Secret) -> String { key.withBytes { String(decoding: $0, as: UTF8.self) } }

    var context: AuthenticationContext { AuthenticationContext(now: time.now, deadline: .never) }

    /// The result of a key: the subject, or the code of the error.
    func result(_ key: String) async -> String {
        do throws(AuthenticationError) {
            return try await provider.authenticate(Credential(bearer: Array(key.utf8)), in: context).providerSubject
        } catch {
            return "\(error.code)"
        }
    }

    /// The same without asking the store; `undecided` where that is needed.
    func local(_ key: String) -> String {
        do throws(AuthenticationError) {
            switch try provider.verify(Credential(header: Array(key.utf8)), in: context) {
            case .authenticated(let identity): return identity.providerSubject
            case .undecided: return "undecided"
            }
        } catch {
            return "\(error.code)"
        }
    }

    func identity(_ key: String) async throws -> Identity {
        try await provider.authenticate(Credential(bearer: Array(key.utf8)), in: context)
    }
}

/// The keys of an account store, in memory.
final class KeysInMemory: APIKeyStoring {
    private struct State {
        var keys: [String: APIKeyRecord] = [:]
        var versions: [String: Int64] = [:]
        var version: Int64 = 0

        mutating func set(_ key: APIKeyRecord) {
            version += 1
            keys[key.id] = key
            versions[key.id] = version
        }
    }

    private let state = Box(State())
    let isBroken = Box(false)
    /// The ids that were looked up.
    let lookups = Box<[String]>([])
    /// The most changes of one response.
    let pageSize = Box(500)
    /// Runs between a lookup and its result.
    let interference = Box<(@Sendable () async -> Void)?>(nil)

    private func check() throws(StoreError) {
        if isBroken.value { throw StoreError(code: "accounts.unavailable", message: "the keys are unavailable") }
    }

    /// Goes back to an earlier state, as from a backup.
    func restore(version: Int64) { state.withLock { $0.version = version } }

    func add(_ key: APIKeyRecord) async throws(StoreError) -> Bool {
        try check()
        return state.withLock { state in
            guard state.keys[key.id] == nil else { return false }
            state.set(key)
            return true
        }
    }

    func key(_ id: String) async throws(StoreError) -> APIKeyRecord? {
        try check()
        lookups.withLock { $0.append(id) }
        let key = state.value.keys[id]
        let interfere = interference.withLock { interference in
            defer { interference = nil }
            return interference
        }
        await interfere?()
        return key
    }

    func keys(after start: String, limit: Int) async throws(StoreError) -> [APIKeyRecord] {
        try check()
        return Array(state.value.keys.values.sorted { $0.id < $1.id }.drop { $0.id <= start }.prefix(limit))
    }

    func revoke(_ id: String, at now: UnixTime) async throws(StoreError) -> APIKeyRecord? {
        try check()
        return state.withLock { state in
            guard var key = state.keys[id] else { return nil }
            key.revokedAt = now
            state.set(key)
            return key
        }
    }

    func rotate(
        _ id: String, to digest: [UInt8], acceptingPreviousUntil end: UnixTime?, at now: UnixTime
    ) async throws(StoreError) -> APIKeyRecord? {
        try check()
        return state.withLock { state in
            guard var key = state.keys[id], key.revokedAt == nil else { return nil }
            key.previous = end.map { APIKeyRecord.Previous(digest: key.digest, endsAt: $0) }
            key.digest = digest
            key.rotatedAt = now
            state.set(key)
            return key
        }
    }

    func noteUses(_ uses: [(id: String, at: UnixTime)]) async throws(StoreError) {
        try check()
        state.withLock { state in
            for use in uses { state.keys[use.id]?.lastUsedAt = use.at }
        }
    }

    func changes(since version: Int64?) async throws(StoreError) -> APIKeyChanges {
        try check()
        let (state, pageSize) = (state.value, pageSize.value)
        guard let version, version <= state.version else {
            return APIKeyChanges(version: state.version, keys: [], isComplete: true)
        }
        let changed = state.versions.filter { $0.value > version }.sorted { $0.value < $1.value }
        let page = changed.prefix(pageSize)
        return APIKeyChanges(
            version: page.last?.value ?? version, keys: page.compactMap { state.keys[$0.key] },
            isComplete: changed.count <= pageSize)
    }
}
