private import COpenSSL
package import MartletCore

/// The keys of session tickets (RFC 5077, RFC 8446 §4.6.1): one set for the whole process.
///
/// Every context uses them, so a session can be resumed on another event loop and after a reload. Keys are rotated
/// every hour; an old key decrypts tickets until its last ticket has expired, and is then wiped. An attacker with the
/// memory of the process can decrypt at most the sessions of that period.
package final class TLSTicketKeys: Sendable {
    /// The lifetime of a ticket.
    static let ticketLife = Duration.seconds(4 * 3600)
    /// How long a key encrypts new tickets.
    static let rotation = Duration.seconds(3600)

    /// A key set: the name on the ticket, a cipher key and a MAC key.
    struct Key: Sendable {
        static let nameBytes = 16
        static let cipherBytes = 32
        static let macBytes = 32
        let madeAt: MonotonicTime
        let bytes: Secret
    }

    let clock: Clock
    /// The last key encrypts new tickets.
    private let keys = Lock<[Key]>([])

    package init(clock: Clock) { self.clock = clock }

    /// The key for new tickets; `nil` when there are no random bytes.
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

    /// The key with this name, while its tickets may be valid.
    func named(_ name: UnsafeBufferPointer<UInt8>) -> Key? {
        let now = clock.monotonicTime
        return keys.withLock { keys in
            keys.last { key in
                now < key.madeAt + TLSTicketKeys.rotation + TLSTicketKeys.ticketLife
                    && key.bytes.withBytes { bytes in unsafe bytes.prefix(Key.nameBytes).elementsEqual(name) }
            }
        }
    }

    /// Whether this key encrypts new tickets.
    func isCurrent(_ key: Key) -> Bool {
        clock.monotonicTime < key.madeAt + TLSTicketKeys.rotation
            && keys.withLock { $0.last?.madeAt == key.madeAt }
    }

    private static func make(at now: MonotonicTime) -> Key? {
        var bytes = [UInt8](repeating: 0, count: Key.nameBytes + Key.cipherBytes + Key.macBytes)
        guard unsafe RAND_priv_bytes(&bytes, Int32(clamping: bytes.count)) == 1 else { return nil }
        return Key(madeAt: now, bytes: Secret(bytes))
    }
}

extension TLSTicketKeys.Key {
    /// Initializes OpenSSL's contexts to encrypt or decrypt one ticket.
    /// - Parameter vector: the initialization vector, 16 bytes: read to decrypt, or random bytes to encrypt with.
    func prepare(
        _ cipher: OpaquePointer?, _ mac: OpaquePointer?, vector: UnsafeMutablePointer<UInt8>, encrypting: Bool
    ) -> Bool {
        bytes.withBytes { bytes in
            unsafe bytes.withUnsafeBufferPointer { bytes in
                guard let base = bytes.baseAddress else { return false }
                let cipherKey = unsafe base + Self.nameBytes
                let macKey = unsafe UnsafeMutablePointer(mutating: cipherKey + Self.cipherBytes)
                return unsafe martlet_tls_prepare_ticket(
                    cipher, mac, cipherKey, macKey, Self.macBytes, vector, encrypting ? 1 : 0) == 1
            }
        }
    }

    /// Writes the key's name for the ticket.
    func writeName(to buffer: UnsafeMutablePointer<UInt8>) {
        bytes.withBytes { bytes in
            unsafe bytes.withUnsafeBufferPointer { bytes in
                if let base = bytes.baseAddress { unsafe buffer.update(from: base, count: Self.nameBytes) }
            }
        }
    }
}
