internal import MartletCore

extension ErrorCode {
    /// The service says that the credential is not valid.
    static let httpInactive: ErrorCode = "http.inactive"
    /// The service says that the credential is valid, and that it has expired.
    static let httpExpired: ErrorCode = "http.expired"
    /// The service says that the caller is not allowed.
    static let httpDenied: ErrorCode = "http.denied"
    /// The credential is not UTF-8.
    static let httpNotText: ErrorCode = "http.not_text"
    /// The service cannot read the body of a login, or the credential: 400 or 422.
    static let httpBadRequest: ErrorCode = "http.bad_request"
    /// The service did not respond in time.
    static let httpTimeout: ErrorCode = "http.timeout"
    /// The service cannot be reached.
    static let httpUnreachable: ErrorCode = "http.unreachable"
    /// Too many calls are under way, of the client's network or altogether.
    static let httpOverloaded: ErrorCode = "http.overloaded"
    /// The service responded 429 or 5xx.
    static let httpUnavailable: ErrorCode = "http.unavailable"
    /// The response is not one of this protocol.
    static let httpBadResponse: ErrorCode = "http.bad_response"
    /// The service is not called for a while, after too many failures.
    static let httpCircuitOpen: ErrorCode = "http.circuit_open"
    /// The system provides no random bytes.
    static let httpNoRandomness: ErrorCode = "http.no_randomness"
}
