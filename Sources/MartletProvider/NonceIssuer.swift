package import MartletCore
private import MartletCrypto

/// Issues single-use nonces for all instances of a store.
///
/// Issued nonces are not stored: a nonce contains its creation time and a MAC, so that requests for nonces exhaust
/// nothing. Its use is stored until it would have expired. The MAC key is shared through the store: the first instance
/// creates it, and every instance caches it, so that nonces are issued while the store is unavailable. A reader of the
/// key can create nonces, which any client can also request.
package final class NonceIssuer: Sendable {
    /// How long a nonce is valid.
    package static let lifetime = Duration.seconds(300)
    /// The prefix of every issued nonce, which distinguishes an expired one from an app's own.
    package static let prefix = "mno_"
    /// How far an instance's clock may be ahead of another's, in seconds.
    private static let skew: Int64 = 60
    /// Unix seconds, big-endian.
    private static let timeBytes = 8
    private static let randomBytes = 16

    private let key: SharedKey
    private let store: any PartitionedStoring
    private let keyPrefix: String
    private let clock: Clock

    /// - Parameter keyPrefix: the prefix of every key in the store.
    package init(store: any PartitionedStoring, keyPrefix: String, clock: Clock) {
        key = SharedKey("nonce-key", store: store, keyPrefix: keyPrefix, clock: clock)
        self.store = store
        self.keyPrefix = keyPrefix
        self.clock = clock
    }

    /// Creates a nonce: `mno_` and 75 characters of base64url.
    /// - Throws: if there is no key yet and the store is unavailable, or the system provides no random bytes.
    package func make() async throws(StoreError) -> String {
        let key = try await key.current()
        let time = UInt64(bitPattern: clock.unixTime.seconds)
        let head = (0..<Self.timeBytes).map { UInt8(truncatingIfNeeded: time >> (56 - 8 * UInt64($0))) }
        let text = head + (try Self.random(Self.randomBytes))
        return Self.prefix + Base64URL.encode(text + Self.code(of: text, key))
    }

    /// Consumes a nonce.
    /// - Parameter owner: who uses it.
    /// - Returns: `answer` the first time; `miss` for one that was not issued, has expired or was used before.
    package func consume(_ nonce: String, for owner: WorkOwner) async -> StoreReply<[UInt8]> {
        guard nonce.utf8.starts(with: Self.prefix.utf8),
            let bytes = Base64URL.decode(Array(nonce.utf8.dropFirst(Self.prefix.utf8.count))),
            bytes.count == Self.timeBytes + Self.randomBytes + SHA256.length, isFresh(bytes)
        else { return .miss }
        do throws(StoreError) {
            if !isGenuine(bytes, try await key.current()) {
                guard let newer = try await key.newer(), isGenuine(bytes, newer) else { return .miss }
            }
            let digest = Base64URL.encode(SHA256.digest(bytes))
            // Longer than any instance accepts the nonce.
            let isFirst = try await store.partition(.nonces, for: owner).setIfAbsent(
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
        let hasPreviousKey = self.key.previous.map { ConstantTime.areEqual(Self.code(of: text, $0), code) } ?? false
        return ConstantTime.areEqual(Self.code(of: text, key), code) || hasPreviousKey
    }

    private static func code(of text: [UInt8], _ key: Secret) -> [UInt8] {
        HMACSHA256.authenticate(Array("martlet nonce".utf8) + [0] + text, key: key)
    }

    private static func random(_ count: Int) throws(StoreError) -> [UInt8] {
        do throws(CryptoError) { return try RandomBytes.make(count) } catch {
            throw StoreError(code: .storeNoRandomness, message: error.message)
        }
    }
}
