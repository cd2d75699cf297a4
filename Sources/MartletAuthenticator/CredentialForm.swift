/// The kind of credential a request carries, known from its form alone.
package enum CredentialForm: UInt8, Sendable {
    /// One of the gateway's own tokens.
    case session
    /// A bearer token that a provider verifies.
    case direct
    /// A name and a password (RFC 7617).
    case basic
}

extension CredentialForm {
    /// Keeps cache entries of one form apart from the others.
    func scope(_ number: UInt32) -> UInt32 {
        switch self {
        // A route's cached decisions use the bare number for either kind of bearer token: see `authorize`.
        case .session, .direct: number
        case .basic: number | 0x8000_0000
        }
    }
}
