package import MartletCore

/// nghttp2 could not create a session: out of memory.
package struct HTTP2Error: Error, Sendable, Equatable, CustomStringConvertible {
    package let code: ErrorCode
    package let message: String

    package var description: String { "\(message) [\(code)]" }

    static let setUpFailed = HTTP2Error(code: .http2SetUpFailed, message: "nghttp2 session setup failed")
}
