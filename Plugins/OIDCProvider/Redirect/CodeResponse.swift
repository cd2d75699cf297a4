internal import MartletCore
internal import MartletProvider

/// What the issuer's page brings to the callback.
struct CodeResponse {
    /// A code, or an error.
    enum Result {
        case code(Secret)
        case failed(IssuerRejection)
    }

    private static let maximumErrorBytes = 128
    private static let maximumDescriptionBytes = 4096
    private static let maximumIssuerBytes = 2048
    private static let maximumCodeBytes = 4096

    let result: Result
    private let issuer: String?

    /// - Throws: `malformed` for fields that are missing or too long.
    init(_ fields: CallbackFields) throws(AuthenticationError) {
        issuer = try fields.text("iss", maximumBytes: Self.maximumIssuerBytes)
        if let error = try fields.text("error", maximumBytes: Self.maximumErrorBytes) {
            let description = try? fields.text("error_description", maximumBytes: Self.maximumDescriptionBytes)
            result = .failed(IssuerRejection(error: error, description: description))
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

/// What an issuer says when it refuses a request (RFC 6749 §4.1.2.1, §5.2).
struct IssuerRejection {
    let error: String
    let description: String?

    /// Logs the error with its description, which often has the reason, with a code of the issuer's own.
    /// - Parameter client: the `client_id` that was refused.
    func log(_ event: String, of client: String, to logger: Logger) {
        logger.warning(
            event, ("error", ShownText.make(error)), ("client_id", client),
            ("error_description", IssuerText.make(description ?? "")))
    }
}
