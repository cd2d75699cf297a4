package import MartletCore
package import MartletJSON
internal import MartletProvider

/// The login that a session was created from; always stored sealed.
package struct SessionRecord: Sendable {
    /// The maximum size of a record as JSON, in bytes.
    package static let maximumBytes = 64 * 1024
    private static let version: Int64 = 1
    /// Of a session that is bound to a key: who does not know the binding must not read it as a bearer's.
    private static let boundVersion: Int64 = 2

    package let subject: String
    package let provider: String
    package let providerSubject: String
    package let issuer: String
    package private(set) var claims: JSONObject
    package private(set) var authTime: UnixTime
    /// When the session was created, in milliseconds of Unix time.
    package let created: Int64
    /// When it ends at the latest, in milliseconds of Unix time.
    package let ends: Int64
    /// The thumbprint of the client's key, which every use needs a proof of (RFC 9449); `nil` for a bearer's session.
    package private(set) var keyThumbprint: String?

    /// - Parameter isBindable: whether a key in the identity's binding becomes that of the session.
    init(
        subject: String, provider: String, identity: Identity, created: Int64, ends: Int64, isBindable: Bool = true
    ) {
        self.subject = subject
        self.provider = provider
        providerSubject = identity.providerSubject
        issuer = identity.issuer
        claims = identity.claims
        // The older of the provider's time and ours: a proof is never newer than the login.
        authTime = UnixTime(seconds: min(max(identity.authTime.seconds, 0), created / 1000))
        self.created = created
        self.ends = ends
        keyThumbprint = isBindable ? identity.binding?.keyThumbprint : nil
    }

    /// The record of the session once it is bound to a key.
    func bound(to thumbprint: String) -> SessionRecord {
        var bound = self
        bound.keyThumbprint = thumbprint
        return bound
    }

    /// The record after its owner has authenticated again.
    ///
    /// The level belongs to the authentication: without one, the session has none any more.
    func renewed(by proof: SessionProof) -> SessionRecord {
        var renewed = self
        renewed.claims[SessionProof.levelClaim] = proof.acr.map { .string($0) }
        renewed.authTime = proof.authTime
        return renewed
    }

    /// Decodes a record from its JSON; `nil` if it is malformed or of another version.
    package init?(_ bytes: [UInt8]) {
        let limits = JSONLimits(maximumDepth: 64, maximumBytes: SessionRecord.maximumBytes)
        guard let object = try? JSON.parse(bytes, limits: limits).object, Self.hasKnownBinding(object),
            let subject = object["sub"]?.string, let provider = object["provider"]?.string,
            let providerSubject = object["provider_sub"]?.string, let issuer = object["iss"]?.string,
            let claims = object["claims"]?.object, let created = object["created"]?.int64,
            let lifetime = object["lifetime"]?.int64, let age = object["age"]?.int64
        else { return nil }
        self.subject = subject
        self.provider = provider
        self.providerSubject = providerSubject
        self.issuer = issuer
        self.claims = claims
        authTime = UnixTime(seconds: (created / 1000).since(age))
        self.created = created
        ends = created.later(by: lifetime)
        keyThumbprint = object[SessionRecord.keyMember]?.string
    }

    /// As in tokens (RFC 9449 §6.1).
    private static let keyMember = "jkt"

    /// Whether a record has the thumbprint of a key exactly if its version says so.
    private static func hasKnownBinding(_ object: JSONObject) -> Bool {
        switch object["v"]?.int64 {
        case version: !object.has(keyMember)
        // A SHA-256 in base64url (RFC 7638).
        case boundVersion: object[keyMember]?.string.flatMap { Base64URL.decode(Array($0.utf8)) }?.count == 32
        default: false
        }
    }

    /// The remaining lifetime of the session.
    func lifetime(at time: SessionTime) -> Duration { .milliseconds(max(ends.since(time.now), 0)) }

    /// Whether its timestamps are ones that a gateway can have written.
    func isPlausible(at time: SessionTime) -> Bool {
        time.isPlausible(created) && time.isPlausible(ends) && time.isPlausible(authTime.milliseconds)
    }

    /// The record as JSON.
    package var bytes: [UInt8] {
        var object: JSONObject = [
            "v": .integer(keyThumbprint == nil ? SessionRecord.version : SessionRecord.boundVersion),
            "sub": .string(subject), "provider": .string(provider),
            "provider_sub": .string(providerSubject), "iss": .string(issuer), "claims": .object(claims),
            // Mostly the same numbers, or small ones.
            "created": .integer(created), "lifetime": .integer(ends.since(created)),
            "age": .integer((created / 1000).since(authTime.seconds)),
        ]
        if let keyThumbprint { object[SessionRecord.keyMember] = .string(keyThumbprint) }
        return JSON.write(object)
    }

    /// The principal, valid until the access token expires.
    /// - Parameters:
    ///   - isBound: whether the token is bound to the session's key; one from before the session was bound is not.
    ///   - claims: those of the subject's account.
    func principal(
        sessionID: String, accessExpiry: Int64, isBound: Bool, claims account: AccountClaims? = nil
    ) -> Principal {
        let claims = account?.merged(into: claims, provider: provider) ?? claims
        let identity = Identity(
            providerSubject: providerSubject, issuer: issuer, claims: claims, authTime: authTime,
            issuedAt: UnixTime(seconds: created / 1000), expiresAt: .roundingUp(milliseconds: accessExpiry),
            binding: isBound ? CredentialBinding(keyThumbprint: keyThumbprint) : nil)
        return Principal(identity: identity, provider: provider, subject: subject, sessionID: sessionID)
    }
}

extension UnixTime {
    /// Rounds a time in milliseconds up to a whole second.
    static func roundingUp(milliseconds: Int64) -> UnixTime {
        UnixTime(seconds: milliseconds / 1000).advanced(bySeconds: milliseconds % 1000 > 0 ? 1 : 0)
    }
}
