internal import MartletConfig
internal import MartletCore
internal import MartletJSON

/// The claims of an identity token, read the way Apple writes them.
struct AppleClaims {
    private static let maximumTimeDigits = 12
    private static let maximumSubjectBytes = 255
    /// What `real_user_status` may be; any other number counts as "unknown".
    private static let realUserStatus: ClosedRange<Int64> = 0...2
    private static let realUserUnknown: Int64 = 1

    private let payload: JSONObject
    /// What each member is, in their order: found in one pass, as every check asks for one.
    private let names: [ClaimName?]

    init(_ payload: JSONObject) {
        self.payload = payload
        names = payload.members.map { ClaimName($0.name) }
    }

    private func value(_ name: ClaimName) -> JSONValue? {
        for place in names.indices where names[place] == name { return payload.members[place].value }
        return nil
    }

    func issuer(among issuers: NonEmpty<Located<String>>) throws(Refusal) -> String {
        guard let issuer = value(.issuer)?.string else { throw .badIssuer("iss is not a text") }
        guard issuers.contains(where: { issuer.hasSameBytes(as: $0.value) }) else {
            throw .badIssuer("iss is \(shown(issuer))")
        }
        return issuer
    }

    /// The one audience: a text, or a list of exactly one.
    func audience(among audiences: NonEmpty<Located<String>>) throws(Refusal) -> String {
        var value = value(.audience)
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
    func time(_ name: ClaimName) throws(Refusal) -> UnixTime? {
        guard let value = value(name) else { return nil }
        guard case .number(let number) = value, let seconds = Self.digits(number.text) else {
            throw .badTimes("\(name.rawValue) is not a whole number of seconds")
        }
        return UnixTime(seconds: seconds)
    }

    private static func digits(_ text: String) -> Int64? {
        let bytes = text.utf8Span.span
        guard bytes.count <= maximumTimeDigits else { return nil }
        var number: Int64 = 0
        for index in bytes.indices {
            let digit = bytes[index] &- 48
            guard digit < 10 else { return nil }
            number = number &* 10 &+ Int64(digit)
        }
        return number
    }

    func subject() throws(Refusal) -> String {
        guard let subject = value(.subject)?.string, (1...Self.maximumSubjectBytes).contains(subject.utf8.count) else {
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
        // Mostly there is nothing but printable ASCII, less 0x20 at most 0x5E: no branch for each byte.
        var greatest: UInt8 = 0
        for index in bytes.indices { greatest = max(greatest, bytes[index] &- 0x20) }
        if greatest <= 0x5E { return false }
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
    func binding(_ name: ClaimName) throws(Refusal) -> String? {
        guard let value = value(name) else { return nil }
        guard let text = value.string else { throw .badClaim("\(name.rawValue) is not a text") }
        return text
    }

    /// Apple's notifications are signed with the same keys for the same audience; they are no proof of a person.
    func refuseEvents() throws(Refusal) {
        guard value(.events) == nil else { throw .wrongTokenKind("this is a notification, not an identity token") }
    }

    /// The claims as rules and headers see them: booleans are booleans, numbers within their meaning, and without those that
    /// serve to check the token and say nothing about the person.
    func normalised() throws(Refusal) -> JSONObject {
        var claims: [JSONObject.Member] = []
        claims.reserveCapacity(payload.count)
        for (place, member) in payload.members.enumerated() {
            guard let name = names[place] else {
                claims.append(member)
                continue
            }
            guard !name.isPrivate else { continue }
            claims.append(JSONObject.Member(name: member.name, value: try normalised(member.value, name)))
        }
        return JSONObject(members: claims)
    }

    private func normalised(_ value: JSONValue, _ name: ClaimName) throws(Refusal) -> JSONValue {
        switch name {
        // Apple has also written these as texts.
        case .emailVerified, .isPrivateEmail, .nonceSupported: return .bool(try boolean(value, name: name.rawValue))
        case .email, .transferSubject, .organisation:
            guard case .string = value else { throw .badClaim("\(name.rawValue) is not a text") }
            return value
        case .realUserStatus:
            guard let number = value.int64 else { throw .badClaim("real_user_status is not a whole number") }
            return .integer(Self.realUserStatus.contains(number) ? number : Self.realUserUnknown)
        default: return value
        }
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

/// The claims that mean something here, by what the token calls them.
enum ClaimName: String, CaseIterable {
    case issuer = "iss"
    case audience = "aud"
    case expiry = "exp"
    case issuedAt = "iat"
    case subject = "sub"
    case events
    case email
    case emailVerified = "email_verified"
    case authTime = "auth_time"
    case nonceSupported = "nonce_supported"
    case isPrivateEmail = "is_private_email"
    case realUserStatus = "real_user_status"
    case transferSubject = "transfer_sub"
    case organisation = "org_id"
    case notBefore = "nbf"
    case nonce
    case codeHash = "c_hash"
    case accessTokenHash = "at_hash"
    case tokenID = "jti"

    /// The claim of that name, if it is one of them; told by its bytes.
    init?(_ name: String) {
        guard let claim = Self.allCases.first(where: { $0.rawValue.hasSameBytes(as: name) }) else { return nil }
        self = claim
    }

    /// Whether it serves to check the token and says nothing about the person.
    var isPrivate: Bool {
        switch self {
        case .nonce, .codeHash, .accessTokenHash, .notBefore, .tokenID: true
        default: false
        }
    }
}
