private import MartletCore
internal import MartletJSON

/// Makes the claims that rules and headers see: new names first, then one form for each kind of value.
struct ClaimNormalizer {
    /// Claims that only serve to verify a token, or to describe a response.
    private static let hidden = ["nonce", "c_hash", "at_hash", "s_hash", "nbf", "jti", "active", "token_type"]
    private static let booleans = ["email_verified", "phone_number_verified"]

    let renames: [ClaimRename]

    /// - Throws: `oidc.bad_claim` for a claim that is not of its type; null is no claim.
    func normalize(_ payload: JSONObject) throws(OIDCError) -> JSONObject {
        let present = renames.filter { rename in
            guard let value = rename.from.value(in: payload), value != .null else { return false }
            return !rename.isDefault || payload.present(rename.to) == nil
        }
        var claims: [JSONObject.Member] = []
        claims.reserveCapacity(payload.count)
        for member in payload.members where member.value != .null {
            let rename = present.first { !$0.from.isNested && $0.from.name.hasSameBytes(as: member.name) }
            if let rename {
                claims.append(JSONObject.Member(name: rename.to, value: try Self.value(member.value, rename.to)))
                continue
            }
            // The renamed one wins.
            let isReplaced = present.contains { $0.to.hasSameBytes(as: member.name) }
            guard !isReplaced, !Self.hidden.contains(where: { $0.hasSameBytes(as: member.name) }) else { continue }
            claims.append(JSONObject.Member(name: member.name, value: try Self.value(member.value, member.name)))
        }
        // The object of a member stays as it is.
        for rename in present where rename.from.isNested {
            guard let value = rename.from.value(in: payload) else { continue }
            claims.append(JSONObject.Member(name: rename.to, value: try Self.value(value, rename.to)))
        }
        return JSONObject(members: claims)
    }

    private static func value(_ value: JSONValue, _ name: String) throws(OIDCError) -> JSONValue {
        if name.hasSameBytes(as: "scope") { return try scopes(value) }
        guard booleans.contains(where: { $0.hasSameBytes(as: name) }) else { return value }
        // Some issuers send these as texts or numbers.
        switch value {
        case .bool: return value
        case "true", "True", "1", 1: return true
        case "false", "False", "0", 0: return false
        default: throw .rejected("bad_claim", "\(name) is neither a boolean nor \"true\", \"false\", 1 or 0")
        }
    }

    /// A list, so that a rule about one scope cannot match a part of another.
    private static func scopes(_ value: JSONValue) throws(OIDCError) -> JSONValue {
        switch value {
        case .string(let text):
            return .array(text.split(separator: " ").map { .string(String($0)) })
        case .array(let list) where list.allSatisfy({ $0.string != nil }): return value
        default: throw .rejected("bad_claim", "scope is neither a string nor a list of strings")
        }
    }
}
