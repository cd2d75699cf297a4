public import MartletCore

/// Why a block of the configuration cannot be used.
///
/// It ends the block it is thrown in; other blocks are still read.
public struct ConfigurationError: Error, Sendable, CustomStringConvertible {
    /// What was found; empty when all of it has been recorded already (``alreadyReported``).
    public let diagnostics: [Diagnostic]

    /// One error at one place.
    public init(_ code: ErrorCode, at location: SourceLocation, _ text: String) {
        diagnostics = [Diagnostic(.error, code, at: location, text)]
    }

    /// Several errors found together, such as two bad elements of one list.
    public init(_ diagnostics: [Diagnostic]) { self.diagnostics = diagnostics }

    /// Ends a block whose errors the reader has recorded.
    public static let alreadyReported = ConfigurationError([])

    /// The reason of the first error.
    public var code: ErrorCode { diagnostics.first?.code ?? .configInvalid }

    public var description: String { diagnostics.map(\.description).joined(separator: "\n") }
}
