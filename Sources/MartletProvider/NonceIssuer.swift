package import MartletCore
private import MartletCrypto
private import Synchronization

/// Issues single-use nonces for all instances of a store.
///
/// Issued nonces are not stored: a nonce contains its creation time and a MAC, so that requests for nonces exhaust
/// nothing. Its use is stored until it would have expired. The MAC key is shared through the store: the first instance
/// creates it, and every instance caches it, so that nonces are issued while the store is unavailable. A reader of the
/// key can create nonces, which any client can also request.
package final class NonceIssuer: Sendable {
    private struct State {
        var key: Secret?
        /// The previous key, by which nonces that are still valid may have been created.
        var previousKey: Secret?
        var checkedAt = MonotonicTime(nanoseconds: .min)
    }

    /// How long a nonce is valid.
    package static let lifetime = Duration.seconds(300)
    /// The prefix of every issued nonce, which distinguishes an expired one from an app's own.
    package static let prefix = "mno_"
    /// How far an instance's clock may be ahead of another's, in seconds.
    private static let skew: Int64 = 60
    private static let keyBytes = 32
    /// Unix seconds, big-endian.
    private static let timeBytes = 8
    private static let randomBytes = 16
    /// How long the store keeps the key, from its creation; after that a new key is created.
    private static let keyLifetime = Duration.seconds(30 * 86_400)
    /// How often an instance compares its key with that of the store.
    private static let checkInterval = Duration.seconds(60)

    /// The maximum number of attempts to agree on a key: an attempt fails only if another instance succeeds.
    private static let rounds = 4

    private let keys: any SharedStoring
    private let uses: any SharedStoring
    private let keyPrefix: String
    private let clock: Clock
    private let state = Mutex(State())

    /// - Parameter keyPrefix: the prefix of every key in the store.
    package init(store: any SharedStoring, keyPrefix: String, clock: Clock) {
        keys = store.partition(.keys)
        uses = store.partition(.nonces)
        self.keyPrefix = keyPrefix
        self.clock = clock
    }

    /// Creates a nonce: `mno_` and 75 characters of base64url.
    /// - Throws: if there is no key yet and the store is unavailable, or the system provides no random bytes.
    package func make() async throws(StoreError) -> String {
        let key = try await currentKey()
        let time = UInt64(bitPattern: clock.unixTime.seconds)
        let head = (0..<Self.timeBytes).map { UInt8(truncatingIfNeeded: time >> (56 - 8 * UInt64($0))) }
        let text = head + (try Self.random(Self.randomBytes))
        return Self.prefix + Base64URL.encode(text + Self.code(of: text, key))
    }

    /// Consumes a nonce.
    /// - Returns: `answer` the first time; `miss` for one that was not issued, has expired or was used before.
    package func consume(_ nonce: String) async -> StoreReply<[UInt8]> {
        guard nonce.utf8.starts(with: Self.prefix.utf8),
            let bytes = Base64URL.decode(Array(nonce.utf8.dropFirst(Self.prefix.utf8.count))),
            bytes.count == Self.timeBytes + Self.randomBytes + SHA256.length, isFresh(bytes)
        else { return .miss }
        do throws(StoreError) {
            let key = try await currentKey()
            guard isGenuine(bytes, key) else { return .miss }
            let digest = Base64URL.encode(SHA256.digest(bytes))
            // Longer than any instance accepts the nonce.
            let isFirst = try await uses.setIfAbsent(
                [1], for: "\(keyPrefix)nonce:\(digest)", lifetime: Self.lifetime + .seconds(2 * Self.skew))
            return isFirst ? .found([1]) : .miss
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
        let previous = state.withLock { $0.previousKey }
        let hasPreviousKey = previous.map { ConstantTime.areEqual(Self.code(of: text, $0), code) } ?? false
        return ConstantTime.areEqual(Self.code(of: text, key), code) || hasPreviousKey
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

    /// The cached key, or that of the store. A cached key is compared with the store in the background when due.
    private func currentKey() async throws(StoreError) -> Secret {
        let now = clock.monotonicTime
        let (key, isDue) = state.withLock { state -> (Secret?, Bool) in
            guard let key = state.key else { return (nil, false) }
            guard state.checkedAt + Self.checkInterval <= now else { return (key, false) }
            state.checkedAt = now
            return (key, true)
        }
        guard let key else { return try await agree() }
        // In the background: an unavailable store changes nothing.
        if isDue { Task { _ = try? await agree() } }
        return key
    }

    /// Adopts the store's key, or stores one: its own if the store has lost it, otherwise a new one.
    @discardableResult
    private func agree() async throws(StoreError) -> Secret {
        for _ in 0..<Self.rounds {
            switch await keys.value(for: storeKey) {
            case .found(let bytes) where bytes.count == Self.keyBytes: return adopt(bytes)
            // Not a valid key: replace it.
            case .found(let bytes): try await keys.remove(storeKey, ifEqualTo: bytes)
            case .unavailable(let error): throw error
            case .miss: break
            }
            let own = state.withLock { $0.key }?.withBytes { $0 }
            let key = if let own { own } else { try Self.random(Self.keyBytes) }
            if try await keys.setIfAbsent(key, for: storeKey, lifetime: Self.keyLifetime) { return adopt(key) }
        }
        throw StoreError(code: "nonce.key_contended", message: "the nonce key changed while it was read")
    }

    private func adopt(_ bytes: [UInt8]) -> Secret {
        let now = clock.monotonicTime
        return state.withLock { state in
            state.checkedAt = now
            if let key = state.key {
                guard !key.withBytes({ ConstantTime.areEqual($0, bytes) }) else { return key }
                state.previousKey = key
            }
            let key = Secret(bytes)
            state.key = key
            return key
        }
    }
}
