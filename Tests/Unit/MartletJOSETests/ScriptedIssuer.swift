import MartletCore
import MartletJOSE
import MartletTesting
import Synchronization

/// A simulated issuer with a configurable response, immediate or held back.
final class ScriptedIssuer: KeyFetching {
    static let keys = Result { try ["ONE", "TWO", "THREE"].map { try SigningKey($0) } }

    private struct State {
        var response: Result<[UInt8], FetchError>
        var fetches = 0
        var isHeld = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state: Mutex<State>

    init(_ document: [UInt8]) { state = Mutex(State(response: .success(document))) }

    var fetches: Int { state.withLock { $0.fetches } }

    /// Responds with another document from now on.
    func respond(_ document: [UInt8]) { state.withLock { $0.response = .success(document) } }

    /// Fails from now on.
    func fail(_ code: ErrorCode = "fetch.status") {
        state.withLock { $0.response = .failure(FetchError(code: code, message: "no")) }
    }

    /// Holds responses back from now on.
    func hold() { state.withLock { $0.isHeld = true } }

    /// Sends the responses held back, and responds immediately from now on.
    func release() {
        let waiting = state.withLock { state in
            defer { state.waiting = [] }
            state.isHeld = false
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    func fetch(_ url: String, timeout: Duration, maximumBytes: Int) async throws(FetchError) -> [UInt8] {
        await withCheckedContinuation { continuation in
            let passes = state.withLock { state in
                state.fetches += 1
                if state.isHeld { state.waiting.append(continuation) }
                return !state.isHeld
            }
            if passes { continuation.resume() }
        }
        return try state.withLock { $0.response }.get()
    }
}

/// One instance's key cache with its surroundings.
struct Instance {
    static let ttl = Duration.seconds(3600)
    static let policy = IssuerKeysPolicy(
        ttl: ttl, maximumStale: .seconds(24 * 3600), unknownKeyCooldown: .seconds(60), negativeTTL: .seconds(300),
        fetchTimeout: .seconds(3))

    let time: VirtualTime
    let issuer: ScriptedIssuer
    let keys: IssuerKeys
    let removed = Box<[KeyID]>([])
    let rotations = Box<[IssuerKeyRotation]>([])
    let log = LogRecorder()

    init(time: VirtualTime = VirtualTime(), issuer: ScriptedIssuer? = nil, store: StoreInMemory? = nil) throws {
        self.time = time
        let issuer = try issuer ?? ScriptedIssuer(Self.document([0, 1]))
        self.issuer = issuer
        keys = IssuerKeys(
            url: "https://issuer.example/keys", policy: Self.policy, allowing: [.rs256], fetcher: issuer, store: store,
            storeKeyPrefix: "t:", clock: time.clock, logger: Logger(log, minimum: .info),
            sleep: { try await time.sleep($0) },
            onKeysRemoved: { [removed] ids in removed.withLock { $0 += ids } },
            onRotation: { [rotations] rotation in rotations.withLock { $0.append(rotation) } })
    }

    /// The lines about failures and their ends, without the issuer's address.
    var outages: [String] {
        log.lines.filter { $0.level > .info || $0["seconds"] != nil }.map {
            $0.description.replacing(" url=https://issuer.example/keys", with: "")
        }
    }

    static func document(_ indices: [Int]) throws -> [UInt8] {
        let all = try ScriptedIssuer.keys.get()
        return try AppleFixture.document(indices.map { all[$0] })
    }

    static func id(_ text: String) throws -> KeyID {
        guard let id = KeyID(text) else { throw TestFailure("\(text) is not a key ID") }
        return id
    }

    /// The result of a lookup as text.
    func lookup(_ name: String) throws -> String { Self.word(keys.lookup(try Self.id(name))) }
    func resolve(_ name: String) async throws -> String { Self.word(await keys.resolve(try Self.id(name))) }

    private static func word(_ lookup: IssuerKeys.Lookup) -> String {
        switch lookup {
        case .key(let key): key.id.text
        case .unusable: "unusable"
        case .unknown: "unknown"
        case .undecided: "undecided"
        case .unavailable: "unavailable"
        }
    }
}
