/// The state of a connection, as far as it matters when the connection limit is reached.
///
/// A connection costs its client next to nothing: an unfinished handshake, half a head or a slow body can occupy a slot
/// until its timeout. Below the limit the timeouts are enough. At the limit, the oldest connection without a complete
/// request is closed for the next one, or a flood of them would keep all clients out.
package enum UnprovenConnection {
    /// How long a connection is protected, in nanoseconds.
    ///
    /// An honest handshake and head take a few round trips, which may be longer; but the oldest goes first, so this
    /// only decides how fast a flood has to be before new connections are rejected: four times `limits.connections` a
    /// second.
    package static let minimumAge: Int64 = 250_000_000
    /// An anonymous upload is kept as long as it receives this many bytes a second.
    package static let minimumRate = 16 * 1024

    /// Nothing complete was received: waiting for a PROXY header, a handshake or a request head.
    case silent(since: Int64)
    /// The body of a request without a verified caller is being received.
    case uploading(since: Int64, bytes: Int)

    /// Whether the connection may be closed in favor of another one.
    package func isEvictable(at now: Int64) -> Bool {
        switch self {
        case .silent(let since): return now &- since >= Self.minimumAge
        case .uploading(let since, let bytes):
            let age = now &- since
            guard age >= Self.minimumAge else { return false }
            return bytes < Int(age / 1_000_000) &* Self.minimumRate / 1000
        }
    }
}

extension UnprovenConnection {
    /// A connection that waits for something other than the end of an exchange.
    package struct Wait {
        package var phase = DownstreamPhase.head
        /// When the wait ends; `max` where it has no end.
        package var deadline = Int64.max
        /// Requests that have begun.
        package var requests = 0
        /// A head has begun and is incomplete.
        package var isReceivingHead = false
        /// There are bytes that the client has not accepted.
        package var hasOutput = false

        package init(
            phase: DownstreamPhase = .head, deadline: Int64 = .max, requests: Int = 0, isReceivingHead: Bool = false,
            hasOutput: Bool = false
        ) {
            self.phase = phase
            self.deadline = deadline
            self.requests = requests
            self.isReceivingHead = isReceivingHead
            self.hasOutput = hasOutput
        }
    }

    /// A request in progress, as far as it matters when the limit is reached.
    package struct Upload {
        /// No provider has verified its caller.
        package var isAnonymous = true
        package var isRequestComplete = false
        package var hasResponseStarted = false
        /// It is a tunnel, or has requested one.
        package var isUpgrade = false
        package var started: Int64 = 0
        /// Bytes of its body that were received.
        package var bytes = 0

        package init(
            isAnonymous: Bool = true, isRequestComplete: Bool = false, hasResponseStarted: Bool = false,
            isUpgrade: Bool = false, started: Int64 = 0, bytes: Int = 0
        ) {
            self.isAnonymous = isAnonymous
            self.isRequestComplete = isRequestComplete
            self.hasResponseStarted = hasResponseStarted
            self.isUpgrade = isUpgrade
            self.started = started
            self.bytes = bytes
        }
    }

    /// A connection that waits for a PROXY header, a handshake or its first request, or is in the middle of a head;
    /// `nil` for any other.
    package init?(waiting: Wait, timeouts: LoopTimeouts) {
        let timeout: Int64
        switch waiting.phase {
        case .proxyHeader: timeout = timeouts.requestHead
        case .handshake: timeout = timeouts.handshake
        case .head:
            guard waiting.requests == 0 || waiting.isReceivingHead, !waiting.hasOutput else { return nil }
            timeout = timeouts.requestHead
        case .frames, .exchange, .waiting, .lingering: return nil
        }
        // The start of the wait follows from its deadline.
        guard waiting.deadline != .max else { return nil }
        self = .silent(since: waiting.deadline &- timeout)
    }

    /// An HTTP/2 connection without open streams: evictable before its first request, and in the middle of a head.
    /// - Parameters:
    ///   - requests: requests that have begun.
    ///   - headStartedAt: when a head began that is incomplete; `max` for none.
    ///   - idleSince: when the last stream ended; `max` for none.
    package init?(withoutStreams requests: Int, headStartedAt: Int64, idleSince: Int64, now: Int64) {
        guard requests == 0 || headStartedAt != .max else { return nil }
        self = .silent(since: min(headStartedAt, idleSince, now))
    }

    /// A request of an unverified caller whose body is being received; `nil` for any other.
    package init?(_ upload: Upload) {
        guard upload.isAnonymous, !upload.isRequestComplete, !upload.hasResponseStarted, !upload.isUpgrade else {
            return nil
        }
        self = .uploading(since: upload.started, bytes: upload.bytes)
    }
}
