internal import MartletCore
internal import MartletJSON

/// The claims that an account keeps: each at its first sight, never replaced.
enum KeptClaims {
    /// What they may take together; a claim that does not fit is not kept.
    static let maximumBytes = 16 * 1024

    private static let limits = JSONLimits(maximumDepth: 8, maximumBytes: 2 * maximumBytes)

    /// Reads them as they are stored.
    static func read(_ text: String) throws(AccountError) -> JSONObject {
        guard let value = try? JSON.parse(Array(text.utf8), limits: limits), let claims = value.object else {
            throw .corrupt
        }
        return claims
    }

    static func write(_ claims: JSONObject) -> String {
        String(decoding: JSON.write(claims), as: UTF8.self)
    }

    /// What is kept with the claims of one more login; `nil` when none of them is new.
    static func merged(_ kept: JSONObject, _ claims: JSONObject) -> JSONObject? {
        var merged = kept
        for member in claims.members where !kept.has(member.name) {
            var longer = merged
            longer[member.name] = member.value
            let bytes = JSON.write(longer)
            // What cannot be read back, because it is nested too deeply, is not kept either.
            if bytes.count <= maximumBytes, (try? JSON.parse(bytes, limits: limits)) != nil { merged = longer }
        }
        return merged.count == kept.count ? nil : merged
    }
}
