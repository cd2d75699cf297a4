public import MartletConfig
internal import MartletCore
internal import MartletCrypto

/// The block of a provider whose `kind` is `mtls`.
public struct MTLSConfiguration: ConfigurationDecodable {
    /// The name of a certificate that identifies its client.
    private enum Identity: String, Sendable, CaseIterable, ConfigurationValue {
        case sanURI = "san_uri"
        case sanDNS = "san_dns"
        case sanEmail = "san_email"
        case subjectCN = "subject_cn"
        case subjectDN = "subject_dn"
        case fingerprint

        var kind: ClientIdentityKind {
            switch self {
            case .sanURI: .sanURI
            case .sanDNS: .sanDNS
            case .sanEmail: .sanEmail
            case .subjectCN: .subjectCN
            case .subjectDN: .subjectDN
            case .fingerprint: .fingerprint
            }
        }
    }

    /// The largest file of authorities.
    private static let maximumFileBytes = 1024 * 1024

    let identity: ClientIdentityKind
    /// The authorities that certificates must come from; `nil` leaves it to the handshake, or to the proxy.
    let authorities: Located<[UInt8]>?

    public init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        authorities = reader.file("ca_file", maximumBytes: Self.maximumFileBytes)
        identity = try reader.required("identity", as: Identity.self).kind
    }

    public static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .required(
                "identity", .choice(Identity.allCases.map(\.rawValue)),
                "The name of a certificate that identifies its client; `subject_dn` as RFC 4514 text, `fingerprint` the SHA-256 in lower-case hexadecimal digits."
            ),
            .optional(
                "ca_file", .path,
                "The authorities that certificates must come from, as PEM; for proxies that verify nothing themselves."),
        ])
    }
}
