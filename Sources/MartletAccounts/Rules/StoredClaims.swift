internal import MartletCore
internal import MartletJSON

/// The claims stored with an account: each when first seen, never replaced.
enum StoredClaims {
    /// The maximum total size as JSON; a claim that exceeds it is not stored.
    static let maximumBytes = 16 * 1024

    private static let limits = JSONLimits(maximumDepth: 8, maximumBytes: 2 * maximumBytes)

    /// Decodes stored claims.
    static func read(_ text: String) throws(AccountError) -> JSONObject {
        guard let value = try? JSON.parse(Array(text.utf8), limits: limits), let claims = value.object else {
            throw .corrupt
        }
        return claims
    }

    static func write(_ claims: JSONObject) -> String {
        String(decoding: JSON.write(claims), as: UTF8.self)
    }

    /// Merges the claims of a login into the stored ones; `nil` if none of them is new.
    static func merged(_ stored: JSONObject, _ claims: JSONObject) -> JSONObject? {
        var merged = stored
        for member in claims.members where !stored.has(member.name) {
            var longer = merged
            longer[member.name] = member.value
            let bytes = JSON.write(longer)
            // Claims nested too deeply to be decoded again are not stored either.
            if bytes.count <= maximumBytes, (try? JSON.parse(bytes, limits: limits)) != nil { merged = longer }
        }
        return merged.count == stored.count ? nil : merged
    }
}
