public import MartletCore

/// Why a block of the configuration cannot be used. It ends decoding of that block; other blocks are still read.
public struct ConfigurationError: Error, Sendable, CustomStringConvertible {
    /// The errors found; empty when all of them have already been recorded (``alreadyReported``).
    public let diagnostics: [Diagnostic]

    /// One error at one position.
    public init(_ code: ErrorCode, at location: SourceLocation, _ text: String) {
        diagnostics = [Diagnostic(.error, code, at: location, text)]
    }

    /// Several errors found together, such as two invalid elements of one list.
    public init(_ diagnostics: [Diagnostic]) { self.diagnostics = diagnostics }

    /// Ends decoding of a block whose errors the reader has already recorded.
    public static let alreadyReported = ConfigurationError([])

    /// The code of the first error.
    public var code: ErrorCode { diagnostics.first?.code ?? .configInvalid }

    public var description: String { diagnostics.map(\.description).joined(separator: "\n") }
}
