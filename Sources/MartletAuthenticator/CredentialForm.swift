package import MartletProvider

/// The kind of credential a request carries, known from its form alone.
package enum CredentialForm: Sendable, Equatable {
    /// One of the gateway's own tokens.
    case session
    /// A bearer token that a provider verifies.
    case direct
    /// A name and a password (RFC 7617).
    case basic
    /// The session cookie.
    case cookie
    /// A header of its own.
    /// - Parameter source: index into the configuration's ``AuthenticationRules/headerSources``.
    case header(source: UInt8)
    /// The client's certificate.
    case certificate
}

extension CredentialForm {
    /// Keeps cache entries of one form apart from the others.
    func scope(_ number: UInt32) -> UInt32 {
        switch self {
        // A route's cached decisions use the bare number for either kind of bearer token: see `authorize`.
        case .session, .direct: number
        case .basic: number | 0x8000_0000
        // A cookie's value is no bearer token, whatever it looks like: other rules apply to it.
        case .cookie: number | 0x4000_0000
        // Neither is a header's; routes have fewer than 2²⁰ numbers.
        case .header(let source): number | 0x2000_0000 | UInt32(source) << 20
        case .certificate: number | 0x1000_0000
        }
    }

    /// A credential of this form.
    package func credential(_ value: consuming [UInt8]) -> Credential {
        switch self {
        case .session, .direct: Credential(bearer: value)
        case .basic: Credential(basic: value)
        case .cookie: Credential(cookie: value)
        case .header: Credential(header: value)
        case .certificate: Credential(certificate: value)
        }
    }
}
