/// The versions of TLS that there are here; older ones are not.
package enum TLSVersion: Sendable, Hashable { case tls12, tls13 }

/// What a listener shows to its clients and demands of them.
package struct TLSServerOptions: Sendable, Equatable {
    /// The same for both sides.
    package typealias Identity = TLSIdentityFiles

    /// Whether clients show certificates.
    package enum ClientAuthentication: Sendable, Hashable {
        case none
        /// A client that shows one must show a good one.
        case optional
        case required
    }

    /// Chosen by the name that the client asks for; the first where none matches.
    package var identities: [Identity]
    package var minimumVersion = TLSVersion.tls12
    /// Names for TLS 1.2 separated by colons, OpenSSL's or those of the registry; `nil` is our choice.
    package var ciphers: String?
    /// The same for TLS 1.3.
    package var cipherSuites: String?
    /// Whose certificates count for clients, as a PEM file.
    package var clientAuthorityFile: String?
    package var clientAuthentication = ClientAuthentication.none
    /// Whether ALPN offers `h2` before `http/1.1`.
    package var offersHTTP2 = true

    package init(identities: [Identity]) { self.identities = identities }
}
