/// An error with a stable code for programs and a message for operators.
public protocol CodedError: Error, Sendable, CustomStringConvertible {
    /// What logs, metrics and tests name; it does not change when the message does.
    var code: ErrorCode { get }
    /// One short line for operators; holds no token, key or other secret.
    var message: String { get }
}

extension CodedError {
    /// `message [code]`.
    public var description: String { "\(message) [\(code)]" }
}
