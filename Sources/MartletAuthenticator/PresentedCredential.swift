internal import MartletHTTP

/// A credential as it was read from a head.
@safe struct PresentedCredential {
    let form: CredentialForm
    /// Where it is in the head.
    let range: ByteRange
    let value: UnsafeBufferPointer<UInt8>
    /// What it is cached under: the token, or the keyed digest of a name and a password.
    let key: UnsafeBufferPointer<UInt8>

    func location(_ route: Int) -> CredentialLocation { CredentialLocation(form: form, range: range, route: route) }
}
