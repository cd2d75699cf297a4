package import MartletCore
private import MartletCrypto

/// The nonces of a server for DPoP proofs (RFC 9449 §8): each names a slot of time, and an HMAC shows who made it.
///
/// Nothing is stored, and instances with the same secret accept each other's nonces.
package struct DPoPNonces: Sendable {
    /// What a client's nonce is.
    package enum State: Sendable, Equatable {
        case current
        /// Still accepted, but to be replaced.
        case ending
        case invalid
    }

    private static let tagBytes = 16
    private static let bytes = 8 + tagBytes

    private let key: Secret
    private let slotSeconds: Int64

    /// - Parameters:
    ///   - secret: from which the key is derived; uniformly random.
    ///   - slotSeconds: how long a nonce is current; it is accepted for up to twice as long.
    package init(secret: Secret, slotSeconds: Int64) {
        key = HKDFSHA256.derive(from: secret, salt: [], purpose: Array("martlet dpop nonce".utf8), length: 32)
        self.slotSeconds = max(slotSeconds, 1)
    }

    /// The nonce for the field `DPoP-Nonce`: 32 characters.
    package func nonce(at now: UnixTime) -> String { Base64URL.encode(value(of: slot(at: now))) }

    /// Whether a client's nonce is accepted.
    ///
    /// Also one of the next slot: another instance's clock may be ahead.
    package func state(of nonce: String, at now: UnixTime) -> State {
        guard let value = Base64URL.decode(nonce), value.count == Self.bytes else { return .invalid }
        let named = value.prefix(8).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        let current = slot(at: now)
        guard [current &- 1, current, current &+ 1].contains(named),
            ConstantTime.areEqual(value, self.value(of: named))
        else { return .invalid }
        return named == current &- 1 ? .ending : .current
    }

    private func slot(at now: UnixTime) -> UInt64 { UInt64(max(now.seconds, 0) / slotSeconds) }

    private func value(of slot: UInt64) -> [UInt8] {
        let number = (0..<8).map { UInt8(truncatingIfNeeded: slot >> (56 - 8 * $0)) }
        return number + HMACSHA256.authenticate(number, key: key).prefix(Self.tagBytes)
    }
}
