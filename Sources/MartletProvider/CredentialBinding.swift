/// What a credential is bound to (RFC 7800 §3.1): whoever presents it without the proof may have stolen it.
///
/// A provider only says what a credential is bound to. The gateway checks the proof with every request, also where the
/// result is reused.
public struct CredentialBinding: Sendable, Hashable {
    /// The thumbprint of the client's key, `jkt` (RFC 9449 §6.1): each request needs a DPoP proof with that key.
    public let keyThumbprint: String?
    /// The thumbprint of the client's certificate, `x5t#S256` (RFC 8705 §3.1).
    public let certificateThumbprint: String?

    /// - Returns: `nil` without any thumbprint: then nothing is bound.
    public init?(keyThumbprint: String? = nil, certificateThumbprint: String? = nil) {
        guard keyThumbprint != nil || certificateThumbprint != nil else { return nil }
        self.keyThumbprint = keyThumbprint
        self.certificateThumbprint = certificateThumbprint
    }
}
