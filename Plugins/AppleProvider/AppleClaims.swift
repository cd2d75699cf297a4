internal import MartletConfig
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

    func issuer(among issuers: NonEmpty<Located<String>>) throws(Refusal) -> String {
        guard let issuer = payload["iss"]?.string else { throw .badIssuer("iss is not a text") }
        guard issuers.contains(where: { issuer.hasSameBytes(as: $0.value) }) else {
            throw .badIssuer("iss is \(shown(issuer))")
        }
        return issuer
    }

    /// The one audience: a text, or a list of exactly one.
    func audience(among audiences: NonEmpty<Located<String>>) throws(Refusal) -> String {
        var value = payload["aud"]
        if let list = value?.array, list.count == 1 { value = list.first }
        guard let audience = value?.string else { throw .badAudience("aud is neither a text nor a list of one") }
        guard audiences.contains(where: { audience.hasSameBytes(as: $0.value) }) else {
            throw .badAudience("aud is \(shown(audience))")
        }
        return audience
    }

    /// An instant: digits only, 12 at most, so that no arithmetic on it can go wrong.
    ///
    /// - Returns: `nil` if the claim is absent.
    func time(_ name: String) throws(Refusal) -> UnixTime? {
        guard let value = payload[name] else { return nil }
        guard case .number(let number) = value, number.text.utf8.count <= Self.maximumTimeDigits,
            Self.isDigits(number.text), let seconds = number.int64
        else { throw .badTimes("\(name) is not a whole number of seconds") }
        return UnixTime(seconds: seconds)
    }

    private static func isDigits(_ text: String) -> Bool {
        let bytes = text.utf8Span.span
        for index in bytes.indices where bytes[index] &- 48 >= 10 { return false }
        return true
    }

    func subject() throws(Refusal) -> String {
        guard let subject = payload["sub"]?.string, (1...Self.maximumSubjectBytes).contains(subject.utf8.count) else {
            throw .badSubject("sub is not a text of 1 to \(Self.maximumSubjectBytes) bytes")
        }
        guard !Self.hasControl(subject) else {
            throw .badSubject("sub has control characters")
        }
        return subject
    }

    /// Whether a text has characters of the category Cc, which Unicode has closed: no table of its is asked.
    private static func hasControl(_ text: String) -> Bool {
        let bytes = text.utf8Span.span
        var before: UInt8 = 0
        for index in bytes.indices {
            let byte = bytes[index]
            // U+0080 to U+009F are C2 80 to C2 9F.
            if byte < 0x20 || byte == 0x7F || (before == 0xC2 && byte < 0xA0) { return true }
            before = byte
        }
        return false
    }

    /// A claim that binds the token to what else the client has; `nil` if it is absent.
    func binding(_ name: String) throws(Refusal) -> String? {
        guard let value = payload[name] else { return nil }
        guard let text = value.string else { throw .badClaim("\(name) is not a text") }
        return text
    }

    /// Apple's notifications are signed with the same keys for the same audience; they are no proof of a person.
    func refuseEvents() throws(Refusal) {
        guard !payload.has("events") else { throw .wrongTokenKind("this is a notification, not an identity token") }
    }

    /// The claims as rules and headers see them: booleans are booleans, numbers within their meaning.
    func normalised() throws(Refusal) -> JSONObject {
        var claims: [JSONObject.Member] = []
        claims.reserveCapacity(payload.count)
        for member in payload.members where !Self.has(Self.privateClaims, member.name) {
            claims.append(JSONObject.Member(name: member.name, value: try normalised(member)))
        }
        return JSONObject(members: claims)
    }

    private func normalised(_ claim: JSONObject.Member) throws(Refusal) -> JSONValue {
        if Self.has(Self.booleans, claim.name) { return .bool(try boolean(claim.value, name: claim.name)) }
        if Self.has(Self.texts, claim.name), claim.value.string == nil {
            throw .badClaim("\(claim.name) is not a text")
        }
        guard claim.name.hasSameBytes(as: "real_user_status") else { return claim.value }
        guard let number = claim.value.int64 else { throw .badClaim("real_user_status is not a whole number") }
        return .integer(Self.realUserStatus.contains(number) ? number : Self.realUserUnknown)
    }

    private static func has(_ names: [String], _ name: String) -> Bool {
        for candidate in names where candidate.hasSameBytes(as: name) { return true }
        return false
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
