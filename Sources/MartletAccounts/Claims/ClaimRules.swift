internal import MartletCore
package import MartletJSON

/// What may be stored as a claim of an account.
package enum ClaimRules {
    /// The most claims of an account, and of each of its identities.
    package static let maximumCount = 32
    /// The maximum size of these claims as JSON, in bytes.
    package static let maximumBytes = 4096
    /// The maximum length of a name in bytes.
    package static let maximumNameBytes = 64
    /// The maximum length of a text in bytes: an entry of the index contains the name, the text and the subject.
    package static let maximumTextBytes = 1024

    /// Claims of identity tokens that the checks of providers and the policies of routes rely on.
    package static let reservedNames = [
        "sub", "iss", "aud", "exp", "iat", "nbf", "jti", "nonce", "nonce_supported", "azp", "acr", "amr", "auth_time",
        "at_hash", "c_hash", "email_verified", "events", "provider",
    ]

    /// Validates the name of a claim.
    /// - Throws: `claims.name_invalid`, `claims.name_reserved`.
    package static func check(name: String) throws(AccountError) {
        guard (1...maximumNameBytes).contains(name.utf8.count), name.utf8.allSatisfy(isNameByte),
            name.utf8.last != UInt8(ascii: ":")
        else {
            throw AccountError(
                .claimsNameInvalid, .invalidClaims,
                "the name of a claim has up to \(maximumNameBytes) letters, digits and _ - . / :, and does not end with :"
            )
        }
        guard !reservedNames.contains(where: { $0.hasSameBytes(as: name) }) else {
            throw AccountError(
                .claimsNameReserved, .invalidClaims, "claim '\(name)' cannot be set: it is the provider's to vouch for")
        }
    }

    /// Validates the value of a claim: a text, a number, a boolean, or a list of them.
    /// - Throws: `claims.value_invalid`.
    package static func check(value: JSONValue, of name: String) throws(AccountError) {
        let elements = value.array ?? [value]
        guard elements.allSatisfy({ indexText(of: $0) != nil }) else {
            throw AccountError(
                .claimsValueInvalid, .invalidClaims,
                "claim '\(name)' must be a text of up to \(maximumTextBytes) bytes, a number, a boolean, or a list of them"
            )
        }
    }

    /// Why members of a merge patch cannot be applied.
    package static func errors(in changes: JSONObject) -> [(name: String, error: AccountError)] {
        changes.members.compactMap { member in
            do throws(AccountError) {
                try check(name: member.name)
                if member.value != .null { try check(value: member.value, of: member.name) }
                return nil
            } catch {
                return (member.name, error)
            }
        }
    }

    /// Validates the claims of an account, or of one of its identities, as a whole.
    /// - Throws: `claims.too_large`.
    static func check(_ claims: JSONObject) throws(AccountError) {
        guard claims.count <= maximumCount, JSON.write(claims).count <= maximumBytes else {
            throw AccountError(
                .claimsTooLarge, .invalidClaims,
                "an account has up to \(maximumCount) claims of \(maximumBytes) bytes in all")
        }
    }

    /// The texts by which a claim is found.
    static func indexTexts(of value: JSONValue) -> [String] { (value.array ?? [value]).compactMap(indexText) }

    /// The text by which a single value is found; `nil` for one that cannot be stored.
    private static func indexText(of value: JSONValue) -> String? {
        switch value {
        case .string(let text):
            text.utf8.count <= maximumTextBytes && !text.utf8.contains(0) ? text : nil
        case .number(let number): number.text.utf8.count <= maximumTextBytes ? number.text : nil
        case .bool(let value): value ? "true" : "false"
        case .null, .array, .object: nil
        }
    }

    private static func isNameByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        case UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "/"), UInt8(ascii: ":"): true
        default: false
        }
    }
}
