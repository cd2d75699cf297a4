public import MartletConfig
internal import MartletCore
internal import MartletCrypto
public import MartletProvider

/// API keys in the configuration: whose they are, by the SHA-256 of each.
public struct KeyTableProvider: LocallyVerifying {
    /// An entry of `keys`.
    public struct Entry: ConfigurationDecodable {
        let subject: String
        let digest: Located<String>
        public init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
            subject = try reader.required("subject")
            digest = try reader.required("sha256")
        }
    }

    /// The provider's block.
    public struct Configuration: ConfigurationDecodable {
        let keys: [Located<Entry>]
        public init(from reader: inout ConfigurationReader) throws(ConfigurationError) { keys = reader.blocks("keys") }
    }

    public static let kind: ProviderKind = "key_table"
    public let accepts: [CredentialSource] = [.header("X-Api-Key")]
    public let isQuick = true
    private let subjects: [[UInt8]: String]

    /// Every digest is one of SHA-256.
    public static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {
        for key in configuration.keys where Hexadecimal.bytes(key.value.digest.value)?.count != SHA256.length {
            diagnostics.error(.configBadValue, at: key.value.digest.location, "sha256: must be 64 hexadecimal digits")
        }
    }

    public init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) {
        let pairs = configuration.keys.map { (Hexadecimal.bytes($0.value.digest.value) ?? [], $0.value.subject) }
        subjects = Dictionary(pairs) { first, _ in first }
    }

    /// Looks the digest up, so that the time that it takes says nothing of other keys.
    private func identity(of credential: Credential, at now: UnixTime) throws(AuthenticationError) -> Identity {
        guard let subject = subjects[credential.withBytes { SHA256.digest($0) }] else {
            throw .rejected("key_table.unknown_key")
        }
        return Identity(
            providerSubject: subject, issuer: "keys", authTime: now, issuedAt: now,
            expiresAt: now.advanced(bySeconds: 3600))
    }

    /// Decides immediately: everything is in memory.
    public func verify(
        _ credential: Credential, in context: AuthenticationContext
    ) throws(AuthenticationError) -> LocalVerification { .authenticated(try identity(of: credential, at: context.now)) }

    /// The same: nothing has to be waited for.
    public func authenticate(
        _ credential: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> Identity { try identity(of: credential, at: context.now) }
}
