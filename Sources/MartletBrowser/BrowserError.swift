package import MartletCore

/// Why a request of a browser is rejected.
package struct BrowserError: CodedError, Equatable {
    package let code: ErrorCode
    /// For operators; contains nothing that the client sent.
    package let message: String

    init(_ code: ErrorCode, _ message: String) {
        self.code = code
        self.message = message
    }

    package static func == (left: BrowserError, right: BrowserError) -> Bool { left.code == right.code }
}
