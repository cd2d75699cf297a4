/// What a route decided about a verified credential; cached under the credential, with its header block and the names
/// for the access log attached.
struct CachedDecision {
    /// Index of the reason for a denial; −1 when the caller is allowed.
    let denial: Int32
    /// Index into the configuration's providers.
    let provider: Int32
    /// See ``CredentialState/subject``.
    let subject: Int
    /// See ``CredentialState/subjectKey``.
    let subjectKey: UInt64
    /// Length of the header block; the names follow it.
    let headerCount: Int32
    /// See ``VerifiedPrincipal/revocationID``.
    let revocationID: UInt64
    /// When the credential expires, in milliseconds of Unix time; the cached decision may expire earlier.
    let end: Int64
}
