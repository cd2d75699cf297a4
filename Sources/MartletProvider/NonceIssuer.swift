package import MartletCore
private import MartletCrypto
private import Synchronization

/// Gives out nonces and takes each once, for all instances of a store.
///
/// A nonce is not kept anywhere: it holds the time at which it was made and a MAC, so that there is nothing to exhaust by
/// asking for one. What is kept is its use, until it would have expired. The key of the MAC is shared over the store: the
/// first instance makes it, and every instance keeps a copy, so that nonces are given out while the store is away.
/// Whoever reads the key can make nonces, which anybody gets for the asking.
package final class NonceIssuer: Sendable {
    private struct State {
        var key: Secret?
        /// What nonces were made with that may still be about.
        var formerKey: Secret?
        var checkedAt = MonotonicTime(nanoseconds: .min)
    }

    /// How long a nonce is good for.
    package static let lifetime = Duration.seconds(300)
    /// What every nonce begins with that is given out; by it one that is gone is told from an app's own.
    package static let mark = "mno_"
    /// How far an instance's clock may be ahead of another's.
    private static let skew: Int64 = 60
    private static let keyBytes = 32
    /// Unix seconds, big-endian.
    private static let timeBytes = 8
    private static let randomBytes = 16
    /// The key has no other use and its MACs are good for minutes: it is renewed when all instances have been down so long.
    private static let keyLifetime = Duration.seconds(30 * 86_400)
    /// How often an instance looks whether it still has the others' key.
    private static let checkInterval = Duration.seconds(60)

    /// How often an instance tries to agree with others on a key: each round that fails is another's that succeeded.
    private static let rounds = 4

    private let keys: any SharedStoring
    private let uses: any SharedStoring
    private let keyPrefix: String
    private let clock: Clock
    private let state = Mutex(State())

    /// - Parameter keyPrefix: what every key of the store begins with.
    package init(store: any SharedStoring, keyPrefix: String, clock: Clock) {
        keys = store.partition(.keys)
        uses = store.partition(.nonces)
        self.keyPrefix = keyPrefix
        self.clock = clock
    }

    /// Makes a nonce: `mno_` and 75 characters of base64url.
    /// - Throws: when there is no key yet and the store is away, or the system gives no random bytes.
    package func make() async throws(StoreError) -> String {
        let key = try await currentKey()
        let time = UInt64(bitPattern: clock.unixTime.seconds)
        let head = (0..<Self.timeBytes).map { UInt8(truncatingIfNeeded: time >> (56 - 8 * UInt64($0))) }
        let text = head + (try Self.random(Self.randomBytes))
        return Self.mark + Base64URL.encode(text + Self.code(of: text, key))
    }

    /// Uses up a nonce.
    /// - Returns: `answer` the first time; `miss` for one that was not given out, has expired or was used before.
    package func use(_ nonce: String) async -> StoreAnswer<[UInt8]> {
        guard nonce.utf8.starts(with: Self.mark.utf8),
            let bytes = Base64URL.decode(Array(nonce.utf8.dropFirst(Self.mark.utf8.count))),
            bytes.count == Self.timeBytes + Self.randomBytes + SHA256.length, isFresh(bytes)
        else { return .miss }
        do throws(StoreError) {
            let key = try await currentKey()
            guard isGenuine(bytes, key) else { return .miss }
            let digest = Base64URL.encode(SHA256.digest(bytes))
            // Longer than any instance takes it for good.
            let isFirst = try await uses.setIfAbsent(
                [1], for: "\(keyPrefix)nonce:\(digest)", lifetime: Self.lifetime + .seconds(2 * Self.skew))
            return isFirst ? .answer([1]) : .miss
        } catch {
            return .unavailable(error)
        }
    }

    private func isFresh(_ bytes: [UInt8]) -> Bool {
        let time = bytes.prefix(Self.timeBytes).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        let age = clock.unixTime.seconds.subtractingReportingOverflow(Int64(bitPattern: time))
        return !age.overflow && (-Self.skew..<Self.lifetime.wholeSeconds).contains(age.partialValue)
    }

    private func isGenuine(_ bytes: [UInt8], _ key: Secret) -> Bool {
        let text = Array(bytes.dropLast(SHA256.length))
        let code = Array(bytes.suffix(SHA256.length))
        let former = state.withLock { $0.formerKey }
        let isOfFormer = former.map { ConstantTime.areEqual(Self.code(of: text, $0), code) } ?? false
        return ConstantTime.areEqual(Self.code(of: text, key), code) || isOfFormer
    }

    private static func code(of text: [UInt8], _ key: Secret) -> [UInt8] {
        HMACSHA256.authenticate(Array("martlet nonce".utf8) + [0] + text, key: key)
    }

    private static func random(_ count: Int) throws(StoreError) -> [UInt8] {
        do throws(CryptoError) {
            return try RandomBytes.make(count)
        } catch {
            throw StoreError(code: "nonce.no_randomness", message: error.message)
        }
    }
}

// MARK: - The key

extension NonceIssuer {
    private var storeKey: String { "\(keyPrefix)nonce-key" }

    /// The key at hand, or that of the store; one that was not compared for a while is, while it goes on being used.
    private func currentKey() async throws(StoreError) -> Secret {
        let now = clock.monotonicTime
        let (key, isDue) = state.withLock { state -> (Secret?, Bool) in
            guard let key = state.key else { return (nil, false) }
            guard state.checkedAt + Self.checkInterval <= now else { return (key, false) }
            state.checkedAt = now
            return (key, true)
        }
        guard let key else { return try await agree() }
        // Nobody waits for it: a store that is away changes nothing.
        if isDue { Task { _ = try? await agree() } }
        return key
    }

    /// Takes over the store's key, or puts one there: a new one, or its own where the store has lost it.
    @discardableResult
    private func agree() async throws(StoreError) -> Secret {
        for _ in 0..<Self.rounds {
            switch await keys.value(for: storeKey) {
            case .answer(let bytes) where bytes.count == Self.keyBytes: return adopt(bytes)
            // Whoever wrote that: nobody can use it.
            case .answer(let bytes): try await keys.remove(storeKey, ifEqualTo: bytes)
            case .unavailable(let error): throw error
            case .miss: break
            }
            let own = state.withLock { $0.key }?.withBytes { $0 }
            let key = if let own { own } else { try Self.random(Self.keyBytes) }
            if try await keys.setIfAbsent(key, for: storeKey, lifetime: Self.keyLifetime) { return adopt(key) }
        }
        throw StoreError(code: "nonce.key_contended", message: "the key of nonces changes while it is read")
    }

    private func adopt(_ bytes: [UInt8]) -> Secret {
        let now = clock.monotonicTime
        return state.withLock { state in
            state.checkedAt = now
            if let key = state.key {
                guard !key.withBytes({ ConstantTime.areEqual($0, bytes) }) else { return key }
                state.formerKey = key
            }
            let key = Secret(bytes)
            state.key = key
            return key
        }
    }
}
