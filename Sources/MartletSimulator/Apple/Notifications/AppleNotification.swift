private import MartletCore
package import MartletCrypto
package import MartletJSON

/// A server-to-server notification of Apple's, whose parts may be changed.
package struct AppleNotification: Sendable {
    /// How the claim `events` is written. Apple's is a string that contains JSON.
    package enum EventsForm: String, Sendable, CaseIterable {
        case string
        case object
        case array
        /// The claim is left out.
        case none
    }

    /// The types that Apple documents, `account-delete` in both spellings.
    package static let types = [
        "email-disabled", "email-enabled", "consent-revoked", "account-delete", "account-deleted",
    ]
    private static let lifetime: Int64 = 24 * 3600
    private static let relayAddress = "abc123xyz@privaterelay.appleid.com"

    package let audience: String
    /// The members of the event: `type`, `sub`, `event_time` in milliseconds, and the address of an e-mail event.
    package var event: JSONObject
    package var eventsForm = EventsForm.string
    /// `nil` leaves the claim out.
    package var id: String?
    /// Claims that override all others; `null` leaves one out.
    package var changes: JSONObject = [:]
    /// Whether it is signed with an unpublished key, under the id of a published one.
    package var isForged = false
    /// How many bytes to add to the claims.
    package var padding = 0

    /// A notification as Apple would send it.
    /// - Parameter time: when the event happened, in milliseconds since 1970.
    /// - Throws: when the system has no random bytes.
    package init(type: String, audience: String, subject: String, time: Int64) throws(CryptoError) {
        self.audience = audience
        id = Base64URL.encode(try RandomBytes.make(16))
        event = ["type": .string(type), "sub": .string(subject), "event_time": .integer(time)]
        guard type.hasPrefix("email-") else { return }
        event["email"] = .string(Self.relayAddress)
        event["is_private_email"] = "true"
    }

    /// The signed JWS, which the notification has as `payload`.
    package func payload(from simulator: AppleSimulator) throws(CryptoError) -> String {
        // The header and the times are those of any token.
        var token = simulator.token(audience: audience, subject: "")
        let now = token.claims["iat"]?.int64 ?? 0
        token.claims = [
            "iss": .string(AppleSimulator.issuer), "aud": .string(audience),
            "exp": .integer(now &+ Self.lifetime), "iat": .integer(now),
        ]
        token.claims["jti"] = id.map { .string($0) }
        token.claims["events"] = events
        if padding > 0 { token.claims["padding"] = .string(String(repeating: "x", count: padding)) }
        for change in changes.members {
            token.claims[change.name] = change.value == .null ? JSONValue?.none : change.value
        }
        return isForged ? try simulator.forge(token) : try simulator.mint(token, by: simulator.key)
    }

    private var events: JSONValue? {
        switch eventsForm {
        case .string: .string(String(decoding: JSON.write(event), as: UTF8.self))
        case .object: .object(event)
        case .array: .array([.object(event)])
        case .none: nil
        }
    }
}
