package import MartletCore

extension ErrorCode {
    /// nghttp2 could not set up a connection.
    package static let http2SetUpFailed: ErrorCode = "http2.set_up_failed"
}
