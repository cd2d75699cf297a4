/// The limits of one connection.
package struct HTTP2Options: Sendable, Equatable {
    /// Streams that may be open concurrently.
    package var maximumConcurrentStreams = 100
    /// Streams that a client may reset within `HTTP2Limits.period`, or cause to be reset by its errors.
    package var maximumResets = 200
    /// Frames of each kind without payload that are accepted within the same period.
    package var maximumFloodFrames = 100
    /// The flow-control window of a stream, in bytes.
    package var initialWindow = 64 * 1024
    /// The flow-control window of the connection, in bytes.
    package var connectionWindow = 1024 * 1024
    /// Bytes of a head or of trailers, as HTTP/1 text.
    package var headerBytes = 16 * 1024
    /// Fields of a head or of trailers.
    package var headerFields = 100
    package var maximumTargetBytes = 8192

    /// Has nghttp2 check requests as well, for tests that compare its checks with ours.
    package var checksRequestsTwice = false

    package init() {}
}
