/// What one connection may cost us.
package struct HTTP2Options: Sendable, Equatable {
    /// Streams that may be open at a time.
    package var maximumConcurrentStreams = 100
    /// Streams that a client may reset within `HTTP2Bounds.period`, or have us reset by its errors.
    package var maximumResets = 200
    /// Frames of each kind that carry nothing, within the same time.
    package var maximumNoise = 100
    /// Bytes of a body that may arrive before the owner consumes any.
    package var initialWindow = 64 * 1024
    /// The same for all streams of the connection together.
    package var connectionWindow = 1024 * 1024
    /// Of a head or of trailers, as HTTP/1 text.
    package var headerBytes = 16 * 1024
    /// Fields of a head or of trailers.
    package var headerFields = 100
    package var maximumTargetBytes = 8192

    package init() {}
}
