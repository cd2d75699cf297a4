package import MartletCore
package import MartletJSON
internal import MartletProvider

/// The login that a session was created from; always stored sealed.
package struct SessionRecord: Sendable {
    /// The maximum size of a record as JSON, in bytes.
    package static let maximumBytes = 64 * 1024
    private static let version: Int64 = 1

    package let subject: String
    package let provider: String
    package let providerSubject: String
    package let issuer: String
    package let claims: JSONObject
    package let authTime: UnixTime
    /// When the session was created, in milliseconds of Unix time.
    package let created: Int64
    /// When it ends at the latest, in milliseconds of Unix time.
    package let ends: Int64

    init(subject: String, provider: String, identity: Identity, created: Int64, ends: Int64) {
        self.subject = subject
        self.provider = provider
        providerSubject = identity.providerSubject
        issuer = identity.issuer
        claims = identity.claims
        // The older of the provider's time and ours: a proof is never newer than the login.
        authTime = UnixTime(seconds: min(max(identity.authTime.seconds, 0), created / 1000))
        self.created = created
        self.ends = ends
    }

    private init(_ record: SessionRecord, claims: JSONObject, authTime: UnixTime) {
        subject = record.subject
        provider = record.provider
        providerSubject = record.providerSubject
        issuer = record.issuer
        self.claims = claims
        self.authTime = authTime
        created = record.created
        ends = record.ends
    }

    /// The record after its owner has authenticated again.
    ///
    /// The level belongs to the authentication: without one, the session has none any more.
    func renewed(by proof: SessionProof) -> SessionRecord {
        var claims = self.claims
        claims[SessionProof.levelClaim] = proof.acr.map { .string($0) }
        return SessionRecord(self, claims: claims, authTime: proof.authTime)
    }

    /// Decodes a record from its JSON; `nil` if it is malformed or of another version.
    package init?(_ bytes: [UInt8]) {
        let limits = JSONLimits(maximumDepth: 64, maximumBytes: SessionRecord.maximumBytes)
        guard let object = try? JSON.parse(bytes, limits: limits).object,
            object["v"]?.int64 == SessionRecord.version,
            let subject = object["sub"]?.string, let provider = object["provider"]?.string,
            let providerSubject = object["provider_sub"]?.string, let issuer = object["iss"]?.string,
            let claims = object["claims"]?.object, let authTime = object["auth_time"]?.int64,
            let created = object["created"]?.int64, let ends = object["ends"]?.int64
        else { return nil }
        self.subject = subject
        self.provider = provider
        self.providerSubject = providerSubject
        self.issuer = issuer
        self.claims = claims
        self.authTime = UnixTime(seconds: authTime)
        self.created = created
        self.ends = ends
    }

    /// The remaining lifetime of the session.
    func lifetime(at time: SessionTime) -> Duration { .milliseconds(max(ends.since(time.now), 0)) }

    /// Whether its timestamps are ones that a gateway can have written.
    func isPlausible(at time: SessionTime) -> Bool {
        time.isPlausible(created) && time.isPlausible(ends) && time.isPlausible(authTime.milliseconds)
    }

    /// The record as JSON.
    package var bytes: [UInt8] {
        JSON.write(
            [
                "v": .integer(SessionRecord.version), "sub": .string(subject), "provider": .string(provider),
                "provider_sub": .string(providerSubject), "iss": .string(issuer), "claims": .object(claims),
                "auth_time": .integer(authTime.seconds), "created": .integer(created), "ends": .integer(ends),
            ] as JSONObject)
    }

    /// The principal, valid until the access token expires.
    /// - Parameter claims: those of the subject's account.
    func principal(sessionID: String, accessExpiry: Int64, claims account: AccountClaims? = nil) -> Principal {
        let claims = account?.merged(into: claims, provider: provider) ?? claims
        let identity = Identity(
            providerSubject: providerSubject, issuer: issuer, claims: claims, authTime: authTime,
            issuedAt: UnixTime(seconds: created / 1000), expiresAt: .roundingUp(milliseconds: accessExpiry))
        return Principal(identity: identity, provider: provider, subject: subject, sessionID: sessionID)
    }
}

extension UnixTime {
    /// Rounds a time in milliseconds up to a whole second.
    static func roundingUp(milliseconds: Int64) -> UnixTime {
        UnixTime(seconds: milliseconds / 1000).advanced(bySeconds: milliseconds % 1000 > 0 ? 1 : 0)
    }
}
