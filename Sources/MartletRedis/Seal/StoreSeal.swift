package import MartletCore
package import MartletCrypto

/// Authenticates what instances believe when they read it from the store they share.
///
/// A sealed value is bound to its kind and to the full name of its key: it verifies nowhere else. The first key seals,
/// all verify.
package final class StoreSeal: Sendable {
    /// What happens to values that do not verify.
    package enum Mode: Sendable {
        /// They count as absent.
        case enforce
        /// They are counted, and used where they can be read.
        case observe
    }

    /// One key, and what is derived from it.
    struct Key: Sendable {
        let id: [UInt8]
        let authentication: Secret
        let encryption: Secret
        let sessions: Secret
        let names: Secret

        init(_ key: Secret) {
            func derive(_ purpose: String, _ length: Int) -> Secret {
                HKDFSHA256.derive(
                    from: key, salt: [], purpose: Array("martlet store seal \(purpose)".utf8), length: length)
            }
            id = derive("id", SealedForm.keyIDLength).withBytes { $0.map { $0 } }
            authentication = derive("authentication", SHA256.length)
            encryption = derive("encryption", AES256GCM.keyLength)
            sessions = derive("sessions", SHA256.length)
            names = derive("names", SHA256.length)
        }
    }

    /// The length of a key in bytes.
    package static let keyLength = 32
    /// How old a message may be, or how far ahead: longer than writes are repeated at a new master.
    private static let messageAge: Int64 = 120_000

    package let failures: SealFailures
    private let sealing: Key
    private let keys: [Key]
    private let mode: Mode
    private let unsealedEnd: Int64
    private let clock: Clock

    /// - Parameters:
    ///   - keys: 32 bytes each.
    ///   - end: until when unsealed values are accepted.
    /// - Returns: `nil` without keys, or if one has another length.
    package init?(
        keys: [Secret], mode: Mode = .enforce, acceptingUnsealedUntil end: UnixTime? = nil, clock: Clock,
        logger: Logger
    ) {
        guard let first = keys.first, keys.allSatisfy({ $0.count == Self.keyLength }) else { return nil }
        sealing = Key(first)
        self.keys = [sealing] + keys.dropFirst().map(Key.init)
        self.mode = mode
        unsealedEnd = end?.milliseconds ?? .min
        self.clock = clock
        failures = SealFailures(clock: clock, logger: logger)
    }

    /// Creates a key.
    /// - Throws: `crypto.failure` if no random bytes are available.
    package static func makeKeyText() throws(CryptoError) -> String {
        Base64.encode(try RandomBytes.make(keyLength), padding: .required)
    }

    // MARK: Values

    /// Seals a value in clear text.
    package func authenticate(_ value: [UInt8], as kind: SealedKind, named name: [UInt8]) -> [UInt8] {
        let code = Self.code(of: value, kind, name, sealing)
        return SealedForm.authenticated(keyID: sealing.id, code: code, value: value).bytes ?? []
    }

    /// Seals a value and encrypts it.
    /// - Throws: `store.seal_failed` if no random bytes are available.
    package func encrypt(_ value: [UInt8], as kind: SealedKind, named name: [UInt8]) throws(StoreError) -> [UInt8] {
        do throws(CryptoError) {
            let sealed = try AES256GCM.seal(value, with: sealing.encryption, context: Self.binding(kind, name))
            return SealedForm.encrypted(keyID: sealing.id, sealed: sealed).bytes ?? []
        } catch {
            throw StoreError(code: .storeSealFailed, message: error.message)
        }
    }

    /// Opens a value of either form; `nil` if it does not verify, which is counted.
    package func open(_ stored: [UInt8], as kind: SealedKind, named name: [UInt8]) -> [UInt8]? {
        switch verify(SealedForm(stored), stored, kind, name) {
        case .genuine(let value): return value
        case .bad(.unsealed, _) where acceptsUnsealed: return stored
        case .bad(let reason, let readable):
            let value = mode == .observe ? readable : nil
            failures.record(kind, reason, isAccepted: value != nil)
            return value
        }
    }

    private enum Verification {
        case genuine([UInt8])
        /// With the value as far as it can be read.
        case bad(SealFailures.Reason, [UInt8]?)
    }

    private func verify(_ form: SealedForm, _ stored: [UInt8], _ kind: SealedKind, _ name: [UInt8]) -> Verification {
        switch form {
        case .unsealed: return .bad(.unsealed, stored)
        case .unknown: return .bad(.formUnknown, nil)
        case .authenticated(let keyID, let code, let value):
            guard let key = key(keyID) else { return .bad(.keyUnknown, value) }
            let isGenuine = ConstantTime.areEqual(code, Self.code(of: value, kind, name, key))
            return isGenuine ? .genuine(value) : .bad(.altered, value)
        case .encrypted(let keyID, let sealed):
            guard let key = key(keyID) else { return .bad(.keyUnknown, nil) }
            let opened = AES256GCM.open(sealed, with: key.encryption, context: Self.binding(kind, name))
            // Copied, because the secret wipes its bytes.
            return opened.map { .genuine($0.withBytes { $0.map { $0 } }) } ?? .bad(.altered, nil)
        }
    }

    private func key(_ id: [UInt8]) -> Key? { keys.first { $0.id == id } }

    private static func code(of value: [UInt8], _ kind: SealedKind, _ name: [UInt8], _ key: Key) -> [UInt8] {
        Array(
            HMACSHA256.authenticate(binding(kind, name) + value, key: key.authentication).prefix(SealedForm.codeLength))
    }

    /// What a value is bound to; no two pairs of kind and name have the same.
    private static func binding(_ kind: SealedKind, _ name: [UInt8]) -> [UInt8] {
        let length = stride(from: 24, through: 0, by: -8).map { UInt8(truncatingIfNeeded: name.count >> $0) }
        return Array("martlet store \(kind.rawValue)\u{0}".utf8) + length + name
    }

    /// The digest that names a limit's bucket in the store, and shows nothing of what is counted.
    package func digest(ofLimitKey key: [UInt8]) -> [UInt8] { HMACSHA256.authenticate(key, key: sealing.names) }

    // MARK: Messages

    /// Seals a message with the time of its creation.
    package func seal(message: [UInt8], on channel: [UInt8]) -> [UInt8] {
        let now = clock.unixMilliseconds
        let time = stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: now >> Int64($0)) }
        return authenticate(time + message, as: .message, named: channel)
    }

    /// Opens a message; `nil` if it does not verify or is not of this time, which is counted.
    package func open(message stored: [UInt8], on channel: [UInt8]) -> [UInt8]? {
        guard let content = open(stored, as: .message, named: channel) else { return nil }
        // Accepted without a seal.
        guard SealedForm(stored) != .unsealed else { return content }
        let time = content.prefix(8).reduce(Int64(0)) { $0 << 8 | Int64($1) }
        let age = clock.unixMilliseconds.subtractingReportingOverflow(time)
        let isTimely = content.count >= 8 && !age.overflow && abs(max(age.partialValue, -.max)) <= Self.messageAge
        if !isTimely {
            failures.record(.message, .untimely, isAccepted: mode == .observe && content.count >= 8)
            guard mode == .observe, content.count >= 8 else { return nil }
        }
        return Array(content.dropFirst(8))
    }

    // MARK: Sessions, which are sealed by keys of their own that this one is part of

    /// One for each key; the first seals.
    package var sessionSecrets: [Secret] { keys.map(\.sessions) }

    /// Whether values without a seal are used.
    package var readsUnsealed: Bool { mode == .observe || acceptsUnsealed }

    /// Records that a value without a seal is used.
    package func unsealedRead(_ kind: SealedKind) {
        if !acceptsUnsealed { failures.record(kind, .unsealed, isAccepted: true) }
    }

    /// Records that a value is not used.
    package func rejected(_ kind: SealedKind, _ reason: SealFailures.Reason = .altered) {
        failures.record(kind, reason, isAccepted: false)
    }

    private var acceptsUnsealed: Bool { clock.unixMilliseconds < unsealedEnd }
}

extension ErrorCode {
    /// A value could not be sealed: the system provides no random bytes.
    package static let storeSealFailed: ErrorCode = "store.seal_failed"
}
