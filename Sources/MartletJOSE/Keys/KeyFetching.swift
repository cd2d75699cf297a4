public import MartletCore

/// Fetches an issuer's key document.
///
/// A redirect, a status other than 200 and a body over the limit are errors.
public protocol KeyFetching: Sendable {
    /// - Parameters:
    ///   - url: https, or http to a loopback address.
    ///   - timeout: of the whole exchange.
    ///   - maximumBytes: of the body.
    func fetch(_ url: String, timeout: Duration, maximumBytes: Int) async throws(FetchError) -> [UInt8]
}

/// Why a document could not be fetched.
public struct FetchError: CodedError {
    public let code: ErrorCode
    /// For operators.
    public let message: String

    public init(code: ErrorCode, message: String) {
        self.code = code
        self.message = message
    }
}
