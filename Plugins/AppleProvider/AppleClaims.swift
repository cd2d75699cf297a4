private import MartletCore
internal import MartletJSON
private import MartletProvider

/// The claims of an identity token, parsed the way Apple writes them.
struct AppleClaims {
    private static let maximumEventsBytes = 4 * 1024
    /// The known values of `real_user_status`; any other number counts as "unknown".
    private static let realUserStatus: ClosedRange<Int64> = 0...2
    private static let realUserUnknown: Int64 = 1

    private let payload: JSONObject
    /// The claim of each member, in the order of the members: found in one pass, because every check looks one up.
    private let names: [ClaimName?]

    init(_ payload: JSONObject) {
        self.payload = payload
        names = payload.members.map { ClaimName($0.name) }
    }

    private func value(_ name: ClaimName) -> JSONValue? {
        for index in names.indices where names[index] == name { return payload.members[index].value }
        return nil
    }

    /// Whether the token has a claim, whatever its value.
    func has(_ name: ClaimName) -> Bool { value(name) != nil }

    /// A claim that binds the token to a nonce or a code; `nil` if it is absent.
    func binding(_ name: ClaimName) throws(AppleError) -> String? {
        guard let value = value(name) else { return nil }
        guard let text = value.string else { throw .badClaim("\(name.rawValue) is not a string") }
        return text
    }

    /// The events of a notification: a JSON text or, as the documentation seems to say, an object.
    /// - Returns: `nil` for anything else.
    var events: JSONObject? {
        switch value(.events) {
        case .object(let object): return object
        case .string(let text):
            let limits = JSONLimits(maximumDepth: 4, maximumBytes: Self.maximumEventsBytes)
            return (try? JSON.parse(Array(text.utf8), limits: limits))?.object
        default: return nil
        }
    }

    /// The `jti`; `nil` if it is absent, not a string, or too long.
    var tokenID: String? {
        guard let id = value(.tokenID)?.string, TokenClaims.isIdentifier(id) else { return nil }
        return id
    }

    /// Whether the token says that it would have the request's nonce.
    var supportsNonce: Bool { (try? value(.nonceSupported).map { try boolean($0, name: "") }) == true }

    /// Apple's notifications are signed with the same keys for the same audience, but do not authenticate a user.
    func rejectEvents() throws(AppleError) {
        guard value(.events) == nil else { throw .wrongTokenKind("this is a notification, not an identity token") }
    }

    /// The claims as rules and headers see them: booleans are booleans, numbers are in their defined range, and claims
    /// that only serve to verify the token are left out.
    func normalized() throws(AppleError) -> JSONObject {
        var claims: [JSONObject.Member] = []
        claims.reserveCapacity(payload.count)
        for (index, member) in payload.members.enumerated() {
            guard let name = names[index] else {
                claims.append(member)
                continue
            }
            guard !name.isPrivate else { continue }
            claims.append(JSONObject.Member(name: member.name, value: try normalized(member.value, name)))
        }
        return JSONObject(members: claims)
    }

    private func normalized(_ value: JSONValue, _ name: ClaimName) throws(AppleError) -> JSONValue {
        switch name {
        // Apple has also sent these as strings.
        case .emailVerified, .isPrivateEmail, .nonceSupported: return .bool(try boolean(value, name: name.rawValue))
        case .email, .transferSubject, .organization:
            guard case .string = value else { throw .badClaim("\(name.rawValue) is not a string") }
            return value
        case .realUserStatus:
            guard let number = value.int64 else { throw .badClaim("real_user_status is not a whole number") }
            return .integer(Self.realUserStatus.contains(number) ? number : Self.realUserUnknown)
        default: return value
        }
    }

    private func boolean(_ value: JSONValue, name: String) throws(AppleError) -> Bool {
        switch value {
        case .bool(let value): return value
        case "true": return true
        case "false": return false
        default: throw .badClaim("\(name) is neither a boolean nor \"true\" or \"false\"")
        }
    }
}

/// The claims that the provider knows, by their names in the token.
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
    case organization = "org_id"
    case notBefore = "nbf"
    case nonce
    case codeHash = "c_hash"
    case accessTokenHash = "at_hash"
    case tokenID = "jti"
    /// Not Apple's: the account store's, from notifications.
    case emailForwarding = "email_forwarding"

    /// The claim of that name, if it is known; compared byte by byte.
    init?(_ name: String) {
        guard let claim = Self.allCases.first(where: { $0.rawValue.hasSameBytes(as: name) }) else { return nil }
        self = claim
    }

    /// Whether the claim only serves to verify the token and says nothing about the user.
    var isPrivate: Bool {
        switch self {
        case .nonce, .codeHash, .accessTokenHash, .notBefore, .tokenID, .emailForwarding: true
        default: false
        }
    }
}
