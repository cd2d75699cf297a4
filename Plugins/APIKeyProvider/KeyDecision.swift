internal import MartletCore
internal import MartletCrypto
internal import MartletProvider

/// Whether a stored key accepts a presented one.
enum KeyDecision: Equatable {
    /// It does, until an instant; `nil` if it does not expire.
    case accepted(until: UnixTime?)
    case rejected(ErrorCode)

    /// - Parameter digest: SHA-256 of the presented key.
    init(_ record: APIKeyRecord, _ digest: [UInt8], at now: UnixTime) {
        var end = record.expiresAt
        // The secret first: who does not have it learns nothing.
        if !ConstantTime.areEqual(record.digest, digest) {
            guard let previous = record.previous, ConstantTime.areEqual(previous.digest, digest) else {
                self = .rejected("api_key.wrong_secret")
                return
            }
            guard now < previous.endsAt else {
                self = .rejected("api_key.replaced")
                return
            }
            end = min(previous.endsAt, end ?? previous.endsAt)
        }
        guard record.revokedAt == nil else {
            self = .rejected("api_key.revoked")
            return
        }
        if let expiry = record.expiresAt, now >= expiry {
            self = .rejected("api_key.expired")
            return
        }
        self = .accepted(until: end)
    }
}
