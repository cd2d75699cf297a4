package import MartletHTTP

/// The one credential of a request, before anything is known of its value.
package enum RequestCredential {
    case none
    /// Where the value of `Authorization` is in the head.
    case authorization(ByteRange)
    /// A header of its own.
    case header(HeaderSearch.Found)
    /// The session cookie; where its value is in the head.
    case cookie(ByteRange)
    /// The certificate of the client.
    case certificate(ClientCertificateBytes)

    var isCookie: Bool {
        if case .cookie = self { true } else { false }
    }
}

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
    /// Whether a cached decision of the route about it was looked up already, and not found.
    var isSought = false
    /// Whether it is good for one request: nothing about it is ever cached, and `key` is empty.
    var isSingleUse = false

    func location(_ route: Int) -> CredentialLocation { CredentialLocation(form: form, range: range, route: route) }
}

/// Where an unverified credential is, for the debug log.
package struct CredentialLocation {
    package let form: CredentialForm
    /// Where it is in the head.
    package let range: ByteRange
    package let route: Int

    package init(form: CredentialForm, range: ByteRange, route: Int) {
        (self.form, self.range, self.route) = (form, range, route)
    }
}
