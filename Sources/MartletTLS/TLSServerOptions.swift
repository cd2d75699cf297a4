/// The supported versions of TLS.
package enum TLSVersion: Sendable, Hashable { case tls12, tls13 }

/// The TLS settings of a listener.
package struct TLSServerOptions: Sendable, Equatable {
    /// The same type as for clients.
    package typealias Identity = TLSIdentityFiles

    /// Whether clients send certificates.
    package enum ClientAuthentication: Sendable, Hashable {
        case none
        /// A certificate is verified if the client sends one.
        case optional
        case required
    }

    /// Selected by the client's SNI; the first one if none matches.
    package var identities: [Identity]
    package var minimumVersion = TLSVersion.tls12
    /// The TLS 1.2 ciphers, separated by colons, by OpenSSL's or IANA's names; `nil` for the default.
    package var ciphers: String?
    /// The TLS 1.3 cipher suites, likewise.
    package var cipherSuites: String?
    /// The authorities of client certificates, as a PEM file.
    package var clientAuthorityFile: String?
    package var clientAuthentication = ClientAuthentication.none
    /// Whether ALPN offers `h2` before `http/1.1`.
    package var offersHTTP2 = true

    package init(identities: [Identity]) { self.identities = identities }
}
