/// Limits frames that cost work and carry no payload, per kind and period.
///
/// Frames that acknowledge ours are exempt: a receiver of data sends WINDOW_UPDATE, and measures latency with PING.
/// Every DATA and HEADERS frame that we send adds credit for some of these.
struct FrameFloodLimiter {
    enum Kind: Int, CaseIterable { case settings, ping, empty, priority, windowUpdate, other, reset }

    private let maximumFloodFrames: Int
    private let maximumResets: Int
    private var counts = InlineArray<7, Int>(repeating: 0)
    private var periodEnd = Int64.min
    private var windowCredit: Int
    private var pingCredit = 0

    init(maximumFloodFrames: Int, maximumResets: Int) {
        self.maximumFloodFrames = maximumFloodFrames
        self.maximumResets = maximumResets
        windowCredit = 4
    }

    /// Starts a new period when the current one has ended.
    mutating func tick(_ now: Int64) {
        guard now >= periodEnd else { return }
        periodEnd = now &+ HTTP2Limits.period
        counts = InlineArray(repeating: 0)
    }

    /// Counts one frame, or the work of several; `false` when the limit is exceeded.
    mutating func count(_ kind: Kind, weight: Int = 1) -> Bool {
        switch kind {
        case .windowUpdate where windowCredit > 0:
            windowCredit &-= 1
            return true
        case .ping where pingCredit > 0:
            pingCredit &-= 1
            return true
        default: break
        }
        counts[kind.rawValue] &+= weight
        return counts[kind.rawValue] <= (kind == .reset ? maximumResets : maximumFloodFrames)
    }

    /// A DATA or HEADERS frame was sent.
    ///
    /// Receivers acknowledge on the stream and on the connection, some more than once for a large frame.
    mutating func credit() {
        windowCredit = min(windowCredit &+ 4, HTTP2Limits.credit)
        pingCredit = min(pingCredit &+ 1, HTTP2Limits.credit)
    }

    /// The peer opened a stream and may set its window.
    mutating func creditStream() { windowCredit = min(windowCredit &+ 2, HTTP2Limits.credit) }
}
