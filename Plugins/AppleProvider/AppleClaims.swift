internal import MartletCore
internal import MartletJSON

/// The claims of an identity token, read the way Apple writes them.
struct AppleClaims {
    private static let maximumTimeDigits = 12
    private static let maximumSubjectBytes = 255
    /// Claims that serve to check the token and say nothing about the person.
    private static let privateClaims = ["nonce", "c_hash", "at_hash", "nbf", "jti"]
    /// Booleans that Apple has also written as texts.
    private static let booleans = ["email_verified", "is_private_email", "nonce_supported"]
    private static let texts = ["email", "transfer_sub", "org_id"]
    /// What `real_user_status` may be; any other number counts as "unknown".
    private static let realUserStatus: ClosedRange<Int64> = 0...2
    private static let realUserUnknown: Int64 = 1

    private let payload: JSONObject

    init(_ payload: JSONObject) { self.payload = payload }

    func issuer(among issuers: [String]) throws(Refusal) -> String {
        guard let issuer = payload["iss"]?.string else { throw .badIssuer("iss is not a text") }
        guard issuers.contains(where: issuer.hasSameBytes) else { throw .badIssuer("iss is \(shown(issuer))") }
        return issuer
    }

    /// The one audience: a text, or a list of exactly one.
    func audience(among audiences: [String]) throws(Refusal) -> String {
        var value = payload["aud"]
        if let list = value?.array, list.count == 1 { value = list.first }
        guard let audience = value?.string else { throw .badAudience("aud is neither a text nor a list of one") }
        guard audiences.contains(where: audience.hasSameBytes) else { throw .badAudience("aud is \(shown(audience))") }
        return audience
    }

    /// An instant: digits only, 12 at most, so that no arithmetic on it can go wrong.
    ///
    /// - Returns: `nil` if the claim is absent.
    func time(_ name: String) throws(Refusal) -> UnixTime? {
        guard let value = payload[name] else { return nil }
        guard case .number(let number) = value, number.text.utf8.count <= Self.maximumTimeDigits,
            number.text.utf8.allSatisfy({ $0 &- 48 < 10 }), let seconds = number.int64
        else { throw .badTimes("\(name) is not a whole number of seconds") }
        return UnixTime(seconds: seconds)
    }

    func subject() throws(Refusal) -> String {
        guard let subject = payload["sub"]?.string, (1...Self.maximumSubjectBytes).contains(subject.utf8.count) else {
            throw .badSubject("sub is not a text of 1 to \(Self.maximumSubjectBytes) bytes")
        }
        guard !subject.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else {
            throw .badSubject("sub has control characters")
        }
        return subject
    }

    /// A claim that binds the token to what else the client has; `nil` if it is absent.
    func binding(_ name: String) throws(Refusal) -> String? {
        guard let value = payload[name] else { return nil }
        guard let text = value.string else { throw .badClaim("\(name) is not a text") }
        return text
    }

    /// Apple's notifications are signed with the same keys for the same audience; they are no proof of a person.
    func refuseEvents() throws(Refusal) {
        guard payload["events"] == nil else { throw .wrongTokenKind("this is a notification, not an identity token") }
    }

    /// The claims as rules and headers see them: booleans are booleans, numbers within their meaning.
    func normalised() throws(Refusal) -> JSONObject {
        var claims = payload
        for name in Self.privateClaims { claims[name] = nil }
        for name in Self.booleans {
            guard let value = claims[name] else { continue }
            claims[name] = .bool(try boolean(value, name: name))
        }
        for name in Self.texts {
            guard let value = claims[name] else { continue }
            guard value.string != nil else { throw .badClaim("\(name) is not a text") }
        }
        if let status = claims["real_user_status"] {
            guard let number = status.int64 else { throw .badClaim("real_user_status is not a whole number") }
            claims["real_user_status"] = .integer(Self.realUserStatus.contains(number) ? number : Self.realUserUnknown)
        }
        return claims
    }

    private func boolean(_ value: JSONValue, name: String) throws(Refusal) -> Bool {
        switch value {
        case .bool(let value): return value
        case "true": return true
        case "false": return false
        default: throw .badClaim("\(name) is neither a boolean nor \"true\" or \"false\"")
        }
    }
}
