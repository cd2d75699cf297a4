public import MartletCore
public import MartletJSON

/// What a provider proved about a caller.
public struct Identity: Sendable {
    /// The provider's own name for the person; stable, opaque, printable as it is.
    public let providerSubject: String
    /// Who vouches, such as `https://appleid.apple.com`.
    public let issuer: String
    /// Everything a rule or a header may use, by claim name.
    ///
    /// Booleans are real booleans here, whatever the wire had.
    public let claims: JSONObject
    /// When the person authenticated, as far as the provider knows.
    public let authTime: UnixTime
    /// When the proof was made; `max_age` counts from here.
    public let issuedAt: UnixTime
    /// When the proof ends; nothing may rely on it at or after this instant.
    public let expiresAt: UnixTime

    public init(
        providerSubject: String, issuer: String, claims: JSONObject, authTime: UnixTime, issuedAt: UnixTime,
        expiresAt: UnixTime
    ) {
        self.providerSubject = providerSubject
        self.issuer = issuer
        self.claims = claims
        self.authTime = authTime
        self.issuedAt = issuedAt
        self.expiresAt = expiresAt
    }
}
