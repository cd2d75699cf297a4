internal import MartletCore
internal import MartletExplain
internal import MartletJSON

/// The file of `explain --as`: the assumed caller, as JSON.
///
/// Members are `provider`, `provider_subject`, `subject`, `issuer`, `session_id`, `auth_time`, `issued_at`,
/// `expires_at` (Unix seconds) and `claims`, all optional. Without `claims`, every other member is a claim.
enum CallerFile {
    private static let attributes = [
        "provider", "provider_subject", "subject", "issuer", "session_id", "auth_time", "issued_at", "expires_at",
    ]
    private static let limits = JSONLimits(maximumDepth: 32, maximumBytes: 64 * 1024)
    /// The default lifetime of the assumed credential in seconds.
    private static let lifetime: Int64 = 900

    /// Reads a file, or standard input for `-`.
    static func read(_ path: String, now: UnixTime) throws(ArgumentFileError) -> AssumedCaller {
        try parse(try ArgumentFile.read(path, "the --as file"), now: now)
    }

    static func parse(_ bytes: [UInt8], now: UnixTime) throws(ArgumentFileError) -> AssumedCaller {
        let object = try object(bytes)
        let claims = try claims(of: object)
        let issuedAt = try instant("issued_at", in: object) ?? now
        return AssumedCaller(
            provider: try text("provider", in: object),
            providerSubject: try text("provider_subject", in: object) ?? claims["sub"]?.string ?? "someone",
            subject: try text("subject", in: object), issuer: try text("issuer", in: object) ?? "",
            sessionID: try text("session_id", in: object), claims: claims,
            authTime: try instant("auth_time", in: object) ?? issuedAt, issuedAt: issuedAt,
            expiresAt: try instant("expires_at", in: object) ?? now.advanced(bySeconds: lifetime))
    }

    private static func object(_ bytes: [UInt8]) throws(ArgumentFileError) -> JSONObject {
        do throws(JSONError) {
            if let object = try JSON.parse(bytes, limits: limits).object { return object }
        } catch {
            throw ArgumentFileError(message: "the --as file is not JSON: \(error)")
        }
        throw ArgumentFileError(message: "the --as file is not a JSON object")
    }

    private static func claims(of object: JSONObject) throws(ArgumentFileError) -> JSONObject {
        guard let claims = object["claims"] else {
            return JSONObject(members: object.members.filter { !attributes.contains($0.name) })
        }
        guard let claims = claims.object else { throw ArgumentFileError(message: "'claims' must be an object") }
        for member in object.members where member.name != "claims" && !attributes.contains(member.name) {
            throw ArgumentFileError(
                message:
                    "unknown member '\(member.name)' beside 'claims'; known are \(attributes.joined(separator: ", "))")
        }
        return claims
    }

    private static func text(_ name: String, in object: JSONObject) throws(ArgumentFileError) -> String? {
        guard let value = object[name], value != .null else { return nil }
        guard let text = value.string, !text.isEmpty else {
            throw ArgumentFileError(message: "'\(name)' must be a string that is not empty")
        }
        return text
    }

    private static func instant(_ name: String, in object: JSONObject) throws(ArgumentFileError) -> UnixTime? {
        guard let value = object[name], value != .null else { return nil }
        guard let seconds = value.int64 else {
            throw ArgumentFileError(message: "'\(name)' must be a whole number of Unix seconds")
        }
        return UnixTime(seconds: seconds)
    }
}
