package import MartletCore
private import MartletCrypto

/// A random key that the instances of a store share.
///
/// The first instance creates it, and every instance caches it, so that it can be used while the store is unavailable.
/// A reader of the store can read it: it protects nothing from those who could replace the store's records anyway.
package final class SharedKey: Sendable {
    private struct State {
        var key: Secret?
        /// The key before this one, by which values that are still valid may have been made.
        var previous: Secret?
        var checkedAt = MonotonicTime(nanoseconds: .min)
        /// When the store last said what its key is.
        var agreedAt = MonotonicTime(nanoseconds: .min)
    }

    private static let length = 32
    /// How long the store keeps the key, from its creation; after that a new key is created.
    private static let lifetime = Duration.seconds(30 * 86_400)
    /// How often an instance compares its key with that of the store, which may have lost all data.
    private static let checkInterval = Duration.seconds(5)
    /// The same, where a value was not made by its key.
    private static let shortestInterval = Duration.seconds(1)

    /// The maximum number of attempts to agree on a key: an attempt fails only if another instance succeeds.
    private static let rounds = 4

    private let name: String
    private let store: any SharedStoring
    private let clock: Clock
    private let state = Lock(State())

    /// - Parameters:
    ///   - name: of the key in the store.
    ///   - keyPrefix: the prefix of every key in the store.
    package init(_ name: String, store: any PartitionedStoring, keyPrefix: String, clock: Clock) {
        self.name = keyPrefix + name
        self.store = store.partition(.keys, for: .gateway)
        self.clock = clock
    }

    /// The key before the current one, if this instance has had one.
    package var previous: Secret? { state.withLock { $0.previous } }

    /// The cached key, or that of the store. A cached key is compared with the store in the background when due.
    /// - Throws: if there is no key yet and the store is unavailable, or the system provides no random bytes.
    package func current() async throws(StoreError) -> Secret {
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

    /// The key of the store, for a value that was not made by the cached one: that of another instance may be newer.
    /// - Returns: `nil` if the keys were compared a moment ago.
    /// - Throws: if the store is unavailable.
    package func newer() async throws(StoreError) -> Secret? {
        let now = clock.monotonicTime
        let isDue = state.withLock { $0.agreedAt + Self.shortestInterval <= now }
        return isDue ? try await agree() : nil
    }

    /// Adopts the store's key, or stores one: its own if the store has lost it, otherwise a new one.
    @discardableResult
    private func agree() async throws(StoreError) -> Secret {
        for _ in 0..<Self.rounds {
            switch await store.value(for: name) {
            case .found(let bytes) where bytes.count == Self.length: return adopt(bytes)
            // Not a valid key: replace it.
            case .found(let bytes): try await store.remove(name, ifEqualTo: bytes)
            case .unavailable(let error): throw error
            case .miss: break
            }
            let own = state.withLock { $0.key }?.withBytes { $0 }
            let key = if let own { own } else { try Self.makeKey() }
            if try await store.setIfAbsent(key, for: name, lifetime: Self.lifetime) { return adopt(key) }
        }
        throw StoreError(code: .storeKeyContended, message: "a shared key changed while it was read")
    }

    private static func makeKey() throws(StoreError) -> [UInt8] {
        do throws(CryptoError) { return try RandomBytes.make(length) } catch {
            throw StoreError(code: .storeNoRandomness, message: error.message)
        }
    }

    private func adopt(_ bytes: [UInt8]) -> Secret {
        let now = clock.monotonicTime
        return state.withLock { state in
            (state.checkedAt, state.agreedAt) = (now, now)
            if let key = state.key {
                guard !key.withBytes({ ConstantTime.areEqual($0, bytes) }) else { return key }
                state.previous = key
            }
            let key = Secret(bytes)
            state.key = key
            return key
        }
    }
}

extension ErrorCode {
    /// The system provides no random bytes.
    static let storeNoRandomness: ErrorCode = "store.no_randomness"
    /// A key that instances share changed each time it was read.
    static let storeKeyContended: ErrorCode = "store.key_contended"
}
