internal import MartletCore
private import MartletCrypto
internal import MartletJSON
internal import MartletProvider

/// The events of a verified notification (Apple, "Processing changes for Sign in with Apple accounts").
struct AppleNotification {
    /// How long after `iat` a notification is accepted: as long as Apple's are valid.
    static let maximumAge = Duration.seconds(86_400)
    /// How far ahead Apple's clock may be, in milliseconds.
    private static let clockSkew: Int64 = 300_000
    /// Before this time, in milliseconds, there were no notifications.
    private static let earliest: Int64 = 1_500_000_000_000
    /// From this number on, `event_time` is in milliseconds; the documentation names no unit.
    private static let firstMilliseconds: Int64 = 100_000_000_000
    private static let maximumSubjectBytes = 255
    private static let maximumTypeBytes = 64

    let notification: ProviderNotification

    /// - Parameters:
    ///   - token: the notification as received, which identifies it if it has no `jti`.
    ///   - now: in milliseconds since 1970.
    /// - Throws: `apple.bad_notification` for events of another form than Apple's.
    init(_ claims: AppleClaims, token: [UInt8], at now: Int64) throws(AppleError) {
        guard let events = claims.events else { throw .badNotification("events is neither an object nor its text") }
        guard let type = events["type"]?.string, (1...Self.maximumTypeBytes).contains(type.utf8.count),
            type.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { throw .badNotification("type is not a name") }
        guard let subject = events["sub"]?.string, (1...Self.maximumSubjectBytes).contains(subject.utf8.count),
            subject.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F })
        else { throw .badNotification("sub is not a string of 1 to \(Self.maximumSubjectBytes) bytes") }
        notification = ProviderNotification(
            id: claims.tokenID ?? "sha256:" + Base64URL.encode(SHA256.digest(token)), type: type, subject: subject,
            time: try Self.time(events["event_time"], at: now), change: Self.change(type))
    }

    private static func time(_ value: JSONValue?, at now: Int64) throws(AppleError) -> Int64 {
        guard let number = value?.int64, number > 0 else { throw .badNotification("event_time is not a time") }
        let (product, overflow) =
            number < firstMilliseconds ? number.multipliedReportingOverflow(by: 1000) : (number, false)
        let (latest, isEndless) = now.addingReportingOverflow(clockSkew)
        guard !overflow, product >= earliest, isEndless || product <= latest else {
            throw .badNotification("event_time is too far in the past or in the future")
        }
        return product
    }

    private static func change(_ type: String) -> ProviderNotification.Change {
        switch type {
        case "consent-revoked": .consentRevoked
        // The first spelling was documented until 2024 and is what Apple sends; the second is documented now.
        case "account-delete", "account-deleted": .accountDeleted
        case "email-disabled": .claims(["email_forwarding": .bool(false)])
        case "email-enabled": .claims(["email_forwarding": .bool(true)])
        default: .none
        }
    }
}
