internal import MartletCore

/// What spans say about errors: a code of the gateway, and never a message, which may have more in it.
package enum SpanError {
    /// The value of `error.type`.
    package static func type(of error: any Error) -> String {
        (error as? any CodedError).map { $0.code.rawValue } ?? "_OTHER"
    }
}
