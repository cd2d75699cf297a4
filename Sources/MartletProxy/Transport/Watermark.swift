/// When a side that produces bytes is paused and resumed, in buffered output bytes of the side that they go to.
enum Watermark {
    /// Above it the producing side is paused.
    static let high = 256 * 1024
    /// Below it, reading resumes.
    static let low = 64 * 1024
    /// Above this much unsent output of all streams of a connection, the largest ones are paused.
    static let connectionHigh = 1024 * 1024
    /// The limit for one stream.
    static let streamHigh = 64 * 1024
    static let streamLow = 16 * 1024

    /// Whether what fills a stream is paused: by what the stream has not sent, or by its share where all streams of the
    /// connection together have not sent much.
    @inline(__always)
    static func pauses(stream unsent: Int, ofConnection total: Int) -> Bool {
        unsent > streamHigh || unsent > streamLow && total > connectionHigh
    }
}
