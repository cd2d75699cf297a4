internal import MartletCore
private import MartletCrypto
internal import MartletJSON

/// The claims of a proof (RFC 9449 §4.2).
struct DPoPClaims: Sendable {
    let id: String
    let issuedAt: UnixTime
    private let method: String
    private let target: DPoPTarget
    private let tokenHash: JSONValue?
    private let expiresAt: UnixTime?
    private let notBefore: UnixTime?

    /// - Throws: the code of a claim that is missing or malformed.
    init(_ claims: JSONObject) throws(DPoPError) {
        guard let id = claims["jti"]?.string, (1...DPoPProof.maximumIDBytes).contains(id.utf8.count) else {
            throw DPoPError(.dpopBadID, "jti is missing, not a string, empty or too long")
        }
        guard let issuedAt = try Self.time("iat", claims) else { throw DPoPError(.dpopBadTime, "iat is missing") }
        guard let method = claims["htm"]?.string else {
            throw DPoPError(.dpopMethodMissing, "htm is missing or not a string")
        }
        guard let target = claims["htu"]?.string.flatMap({ DPoPTarget($0) }) else {
            throw DPoPError(.dpopBadURL, "htu is missing or not an absolute URL")
        }
        self.id = id
        self.issuedAt = issuedAt
        self.method = method
        self.target = target
        tokenHash = claims["ath"]
        expiresAt = try Self.time("exp", claims)
        notBefore = try Self.time("nbf", claims)
    }

    private static func time(_ name: String, _ claims: JSONObject) throws(DPoPError) -> UnixTime? {
        guard let value = claims[name] else { return nil }
        guard let seconds = value.int64 else { throw DPoPError(.dpopBadTime, "\(name) is not an integer") }
        return UnixTime(seconds: seconds)
    }

    /// Checks 8, 9 and 12 of RFC 9449 §4.3: method, URL and access token.
    func check(for request: DPoPRequest) throws(DPoPError) {
        guard method.hasSameBytes(as: request.method) else {
            throw DPoPError(.dpopMethodMismatch, "the proof is for another method")
        }
        guard target == request.target else { throw DPoPError(.dpopURLMismatch, "the proof is for another URL") }
        guard let accessToken = request.accessToken else { return }
        guard let hash = tokenHash else { throw DPoPError(.dpopTokenHashMissing, "the proof has no ath") }
        guard hash == .string(Base64URL.encode(SHA256.digest(accessToken))) else {
            throw DPoPError(.dpopTokenHashMismatch, "the proof is for another access token")
        }
    }

    /// Check 11, and the times that any JWT may have (RFC 7519 §4.1).
    func checkTimes(_ policy: DPoPPolicy, _ now: UnixTime) throws(DPoPError) {
        let latest = now.advanced(bySeconds: policy.maximumSkew)
        guard max(issuedAt, notBefore ?? issuedAt) <= latest else {
            throw DPoPError(.dpopInFuture, "the proof is from the future")
        }
        guard now <= issuedAt.advanced(bySeconds: policy.maximumAge), expiresAt.map({ now < $0 }) ?? true else {
            throw DPoPError(.dpopTooOld, "the proof has expired")
        }
    }
}
