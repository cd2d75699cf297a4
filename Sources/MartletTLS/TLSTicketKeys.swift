private import COpenSSL
package import MartletCore
private import Synchronization

/// The keys that session tickets are sealed with (RFC 5077, RFC 8446 §4.6.1): one set for the whole process.
///
/// Every context uses them, so a session that began on one loop goes on at another, and goes on after a reload. A fresh
/// key comes every hour; older ones open tickets until the last ticket they sealed is past its life, then they are wiped.
/// Whoever steals the memory of the process can read at most what was said in that span.
package final class TLSTicketKeys: Sendable {
    /// How long a ticket is good.
    static let ticketLife = Duration.seconds(4 * 3600)
    /// How long one key seals.
    static let rotation = Duration.seconds(3600)

    /// One key: a name on the ticket, a cipher key and a key for the seal.
    struct Key: Sendable {
        static let nameBytes = 16
        static let cipherBytes = 32
        static let sealBytes = 32
        let madeAt: MonotonicTime
        let bytes: Secret
    }

    private let clock: Clock
    /// The one that seals is the last.
    private let keys = Mutex<[Key]>([])

    package init(clock: Clock) { self.clock = clock }

    /// The key to seal with; `nil` when the system has no randomness.
    func current() -> Key? {
        let now = clock.monotonicTime
        return keys.withLock { keys in
            if let last = keys.last, now < last.madeAt + TLSTicketKeys.rotation { return last }
            keys.removeAll { $0.madeAt + TLSTicketKeys.rotation + TLSTicketKeys.ticketLife <= now }
            guard let fresh = TLSTicketKeys.make(at: now) else { return nil }
            keys.append(fresh)
            return fresh
        }
    }

    /// The key with a name, while tickets of it may be good.
    func named(_ name: UnsafeBufferPointer<UInt8>) -> Key? {
        let now = clock.monotonicTime
        return keys.withLock { keys in
            keys.last { key in
                now < key.madeAt + TLSTicketKeys.rotation + TLSTicketKeys.ticketLife
                    && key.bytes.withBytes { bytes in unsafe bytes.prefix(Key.nameBytes).elementsEqual(name) }
            }
        }
    }

    /// Whether it is the one that seals now.
    func isCurrent(_ key: Key) -> Bool {
        clock.monotonicTime < key.madeAt + TLSTicketKeys.rotation
            && keys.withLock { $0.last?.madeAt == key.madeAt }
    }

    private static func make(at now: MonotonicTime) -> Key? {
        var bytes = [UInt8](repeating: 0, count: Key.nameBytes + Key.cipherBytes + Key.sealBytes)
        guard unsafe RAND_priv_bytes(&bytes, Int32(clamping: bytes.count)) == 1 else { return nil }
        return Key(madeAt: now, bytes: Secret(bytes))
    }
}

extension TLSTicketKeys.Key {
    /// Readies OpenSSL to seal or to open one ticket.
    /// - Parameter vector: 16 bytes, given when opening and made when sealing.
    func prepare(
        _ cipher: OpaquePointer?, _ seal: OpaquePointer?, vector: UnsafeMutablePointer<UInt8>, sealing: Bool
    ) -> Bool {
        bytes.withBytes { bytes in
            unsafe bytes.withUnsafeBufferPointer { bytes in
                guard let base = bytes.baseAddress else { return false }
                let cipherKey = unsafe base + Self.nameBytes
                let sealKey = unsafe UnsafeMutablePointer(mutating: cipherKey + Self.cipherBytes)
                return unsafe martlet_tls_prepare_ticket(
                    cipher, seal, cipherKey, sealKey, Self.sealBytes, vector, sealing ? 1 : 0) == 1
            }
        }
    }

    /// Writes the name that goes on the ticket.
    func writeName(to room: UnsafeMutablePointer<UInt8>) {
        bytes.withBytes { bytes in
            unsafe bytes.withUnsafeBufferPointer { bytes in
                if let base = bytes.baseAddress { unsafe room.update(from: base, count: Self.nameBytes) }
            }
        }
    }
}
