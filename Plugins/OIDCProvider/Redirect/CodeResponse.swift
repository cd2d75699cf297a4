internal import MartletCore
internal import MartletProvider

/// What the issuer's page brings to the callback.
struct CodeResponse {
    /// A code, or an error.
    enum Result {
        case code(Secret)
        case failed(String)
    }

    private static let maximumErrorBytes = 128
    private static let maximumIssuerBytes = 2048
    private static let maximumCodeBytes = 4096

    let result: Result
    private let issuer: String?

    /// - Throws: `malformed` for fields that are missing or too long.
    init(_ fields: CallbackFields) throws(AuthenticationError) {
        issuer = try fields.text("iss", maximumBytes: Self.maximumIssuerBytes)
        if let error = try fields.text("error", maximumBytes: Self.maximumErrorBytes) {
            result = .failed(error)
        } else {
            result = .code(try fields.requiredSecret("code", maximumBytes: Self.maximumCodeBytes))
        }
    }

    /// Compares `iss`, so that another issuer's code is not sent to this one, nor this one's to another (RFC 9207).
    ///
    /// It is required beside a code alone: some issuers that announce it send no `iss` with their errors, which carry
    /// nothing that could be sent to the wrong one.
    func checkIssuer(among issuers: [String], isRequired: Bool) throws(OIDCError) {
        guard let issuer else {
            if isRequired, case .code = result { throw .rejected("bad_issuer", "the response has no iss") }
            return
        }
        guard issuers.contains(where: { issuer.hasSameBytes(as: $0) }) else {
            throw .rejected("bad_issuer", "iss of the response is \(ShownText.make(issuer))")
        }
    }
}
