public import MartletCore
public import MartletJSON

/// Where the subject comes from that upstreams see; without an account store it is always ``provider``.
public enum SubjectSource: Sendable, Hashable {
    /// The account of the identity, which is created if there is none.
    case account
    /// The provider alone: `<provider>:<provider subject>`, also where there is an account store.
    case provider
    /// The provider's subject is that of an account, which must exist and be neither disabled nor deleted.
    case existingAccount
}

/// The authenticated identity of a caller.
public struct Identity: Sendable {
    /// The provider's identifier of the user: stable, opaque and printable.
    public let providerSubject: String
    /// The issuer, such as `https://appleid.apple.com`.
    public let issuer: String
    /// The claims available to rules and headers, by name. Booleans are JSON booleans, whatever the token had.
    public let claims: JSONObject
    /// When the user authenticated, as far as the provider knows.
    public let authTime: UnixTime
    /// When the credential was issued; `max_age` counts from here.
    public let issuedAt: UnixTime
    /// When the credential expires; it must not be used at or after this instant.
    public let expiresAt: UnixTime
    /// Until when the gateway may reuse this result for the same credential without asking the provider again.
    ///
    /// Never after ``expiresAt``. A time that has passed means that every request asks.
    public let reusableUntil: UnixTime
    /// What the credential is bound to; `nil` for one that whoever has it may use.
    public let binding: CredentialBinding?
    /// Where the subject comes from that upstreams see.
    public let subjectSource: SubjectSource
    /// What the body of this request has to be; `nil` if the credential does not say.
    public let bodyDigest: BodyDigest?

    /// - Parameters:
    ///   - reusableUntil: `nil` for `expiresAt`.
    ///   - binding: the proof that each request needs besides the credential.
    ///   - subjectSource: for a direct credential; a login always has an account.
    ///   - bodyDigest: the result is of one request then, and never reused.
    public init(
        providerSubject: String, issuer: String, claims: JSONObject = [:], authTime: UnixTime, issuedAt: UnixTime,
        expiresAt: UnixTime, reusableUntil: UnixTime? = nil, binding: CredentialBinding? = nil,
        subjectSource: SubjectSource = .account, bodyDigest: BodyDigest? = nil
    ) {
        self.providerSubject = providerSubject
        self.issuer = issuer
        self.claims = claims
        self.authTime = authTime
        self.issuedAt = issuedAt
        self.expiresAt = expiresAt
        self.subjectSource = subjectSource
        self.reusableUntil = bodyDigest == nil ? min(reusableUntil ?? expiresAt, expiresAt) : UnixTime(seconds: 0)
        self.binding = binding
        self.bodyDigest = bodyDigest
    }

    /// The same identity, not reused for another request.
    package var forOneRequest: Identity { changed(reusableUntil: UnixTime(seconds: 0)) }

    /// A copy in which what is given differs.
    package func changed(
        claims: JSONObject? = nil, reusableUntil: UnixTime? = nil, binding: CredentialBinding? = nil
    ) -> Identity {
        Identity(
            providerSubject: providerSubject, issuer: issuer, claims: claims ?? self.claims, authTime: authTime,
            issuedAt: issuedAt, expiresAt: expiresAt, reusableUntil: reusableUntil ?? self.reusableUntil,
            binding: binding ?? self.binding, subjectSource: subjectSource, bodyDigest: bodyDigest)
    }
}
