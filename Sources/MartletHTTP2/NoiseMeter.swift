/// Counts the frames that cost us work and carry nothing, each kind by itself, within a period.
///
/// Frames that answer ours are not noise: a receiver acknowledges data with WINDOW_UPDATE, and measures the way by PING
/// while data comes. Every DATA and HEADERS frame that we send pays for some of these.
struct NoiseMeter {
    enum Kind: Int, CaseIterable { case settings, ping, empty, priority, windowUpdate, other, reset }

    private let maximumNoise: Int
    private let maximumResets: Int
    private var counts = InlineArray<7, Int>(repeating: 0)
    private var periodEnd = Int64.min
    private var windowCredit: Int
    private var pingCredit = 0

    init(maximumNoise: Int, maximumResets: Int) {
        self.maximumNoise = maximumNoise
        self.maximumResets = maximumResets
        windowCredit = 4
    }

    /// Begins another period where the last one is over.
    mutating func tick(_ now: Int64) {
        guard now >= periodEnd else { return }
        periodEnd = now &+ HTTP2Bounds.period
        counts = InlineArray(repeating: 0)
    }

    /// Counts one frame, or as much work as several make; `false` when it is too much.
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
        return counts[kind.rawValue] <= (kind == .reset ? maximumResets : maximumNoise)
    }

    /// A frame with data or a head has gone out.
    ///
    /// Receivers acknowledge on the stream and on the connection, some of them more than once for a large frame.
    mutating func credit() {
        windowCredit = min(windowCredit &+ 4, HTTP2Bounds.credit)
        pingCredit = min(pingCredit &+ 1, HTTP2Bounds.credit)
    }

    /// A stream was opened by the peer, which may set its window.
    mutating func creditStream() { windowCredit = min(windowCredit &+ 2, HTTP2Bounds.credit) }
}
