public import MartletConfig
internal import MartletCore
internal import MartletCrypto
public import MartletProvider

/// A partner's requests: `X-Partner-Signature: <time> <code>`, an HMAC over the time, the method and the path.
public struct SignedPartnerProvider: RequestInspecting {
    /// The provider's block.
    public struct Configuration: ConfigurationDecodable {
        let subject: String
        let secret: Located<Secret>

        public init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
            subject = try reader.required("subject")
            secret = try reader.secret("secret")
        }
    }

    public static let kind: ProviderKind = "signed_partner"
    public let accepts: [CredentialSource] = [.header("X-Partner-Signature")]
    public let reuseKey: Set<RequestPart> = [.method, .path]
    private let configuration: Configuration

    /// There is nothing to check across fields.
    public static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {}

    public init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) {
        self.configuration = configuration
    }

    /// Checks the code, and that it was made within the last minute; nothing is reused beyond that.
    public func authenticate(
        _ credential: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> Identity {
        let parts = credential.withBytes { String(decoding: $0, as: UTF8.self) }.split(separator: " ")
        guard let request = context.request, parts.count == 2, let seconds = Int64(parts[0]),
            let code = Hexadecimal.bytes(parts[1])
        else { throw .rejected("signed_partner.malformed") }
        let text = Array("\(parts[0]) \(request.method) \(request.path)".utf8)
        let expected = HMACSHA256.authenticate(text, key: configuration.secret.value)
        guard ConstantTime.areEqual(code, expected) else { throw .rejected("signed_partner.bad_signature") }
        let (time, end) = (UnixTime(seconds: seconds), UnixTime(seconds: seconds).advanced(bySeconds: 60))
        guard time <= context.now.advanced(bySeconds: 5), context.now < end else {
            throw .rejected("signed_partner.too_old")
        }
        return Identity(
            providerSubject: configuration.subject, issuer: "partner", authTime: time, issuedAt: time,
            expiresAt: end)
    }
}
