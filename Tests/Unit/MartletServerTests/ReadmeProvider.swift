public import MartletConfig
internal import MartletCore
private import MartletCrypto
private import MartletJSON
public import MartletProvider

/// Whoever knows the word may come in: `Authorization: Bearer door_…`.
public struct DoorProvider: Authenticating {
    public struct Configuration: ConfigurationDecodable {
        let guest: String
        let word: Secret

        public init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
            guest = reader.optional("guest", default: "guest")
            word = try reader.secret("word").value  // `word` or `word_file`
        }
    }

    public static let kind: ProviderKind = "door"
    public let accepts: [CredentialSource] = [.bearerPrefix("door_")]
    private let configuration: Configuration

    public static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {}

    public init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError) {
        self.configuration = configuration
    }

    public func authenticate(
        _ credential: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> Identity {
        let wanted = configuration.word.withBytes { Array("door_".utf8) + $0 }
        guard credential.withBytes({ ConstantTime.areEqual($0, wanted) }) else { throw .rejected("door.wrong_word") }
        return Identity(
            providerSubject: configuration.guest, issuer: "door", claims: [:], authTime: context.now,
            issuedAt: context.now, expiresAt: context.now.advanced(bySeconds: 60))
    }
}
