package import MartletCore

extension ErrorCode {
    /// nghttp2 could not create a session.
    package static let http2SetUpFailed: ErrorCode = "http2.set_up_failed"
}
