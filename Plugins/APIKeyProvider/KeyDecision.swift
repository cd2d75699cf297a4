internal import MartletCore
internal import MartletCrypto
internal import MartletProvider

/// Whether a stored key accepts a presented one.
enum KeyDecision: Equatable {
    /// It does, until an instant; `nil` if it does not expire.
    case accepted(until: UnixTime?)
    case rejected(ErrorCode)

    /// - Parameter digest: SHA-256 of the presented key.
    init(_ record: APIKeyRecord, _ digest: [UInt8], at now: UnixTime) { self = Self.of(record, digest, at: now) }

    private static func of(_ record: APIKeyRecord, _ digest: [UInt8], at now: UnixTime) -> KeyDecision {
        var end = record.expiresAt
        // The secret first: who does not have it learns nothing.
        if !ConstantTime.areEqual(record.digest, digest) {
            guard let previous = record.previous, ConstantTime.areEqual(previous.digest, digest) else {
                return .rejected("api_key.wrong_secret")
            }
            guard now < previous.endsAt else { return .rejected("api_key.replaced") }
            end = min(previous.endsAt, end ?? previous.endsAt)
        }
        guard record.revokedAt == nil else { return .rejected("api_key.revoked") }
        if let expiry = record.expiresAt, now >= expiry { return .rejected("api_key.expired") }
        return .accepted(until: end)
    }
}
