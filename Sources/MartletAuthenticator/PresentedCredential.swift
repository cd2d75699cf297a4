internal import MartletHTTP

/// A credential as it was read from a head.
@safe struct PresentedCredential {
    let form: CredentialForm
    /// Where it is in the head.
    let range: ByteRange
    let value: UnsafeBufferPointer<UInt8>
    /// What it is cached under: the value, or a keyed digest.
    let key: UnsafeBufferPointer<UInt8>
    /// Whether `key` is a digest: the cache does not have the credential, so that it cannot be verified again.
    var isDigest = false
    /// Whether the scheme is `DPoP`: only for tokens that are bound to a key.
    var isDPoP = false

    /// Whether no decision about it can have been found under the bare number of its route.
    var isUnsought: Bool { isDigest || form != .session && form != .direct }

    func location(_ route: Int) -> CredentialLocation { CredentialLocation(form: form, range: range, route: route) }
}
