import MartletConfig
import MartletHTTP
import Testing

@testable import MartletDecisions

/// What happens to a tunnel.
enum TunnelEvent: Sendable {
    case client([UInt8])
    case upstream([UInt8])
    case clientCloses
    case upstreamCloses
    case end(CloseReason)
    /// Milliseconds pass, then the tunnel is checked.
    case wait(Int64)
    /// The gateway stops, and the tunnel is checked.
    case drain
    /// The output for the client is not sent completely.
    case clientStalls
    /// The client accepts some of it.
    case clientReads
    /// All of it was sent.
    case clientFlushed
    case upstreamStalls
    case upstreamFlushed
}

/// Drives a tunnel as the event loop does, without its connections.
///
/// What the tunnel wants done is recorded as words: `up 8` and `down 8` for bytes that pass, `up header 6` for a header
/// that arrived in pieces, `close up 1001` for a Close frame, `fin up` for the end of the writing direction, `finish`
/// and `abort` for the end.
struct TunnelBench: ~Copyable {
    static let millisecond: Int64 = 1_000_000

    var tunnel = Tunnel()
    private var now: Int64 = 1_000_000_000_000
    private var isClientFlushed = true
    private var isUpstreamFlushed = true
    private var isDraining = false
    private var lastWriteAt: Int64 = 0

    /// - Parameters:
    ///   - idle: the route's timeout, in seconds.
    ///   - upstreamIdle: the upstream's, in seconds.
    ///   - age: the route's maximum, in seconds; `nil` is unlimited.
    init(_ name: String = "websocket", idle: Int64 = 60, upstreamIdle: Int64 = 3600, age: Int64? = nil) {
        request(name, idle: idle, age: age)
        tunnel.open(
            now: now, hasExtensions: false, upstreamIdleTimeout: upstreamIdle * 1000 * TunnelBench.millisecond)
    }

    /// Begins with an offer, as for another exchange in the same slot.
    mutating func request(_ name: String, idle: Int64 = 60, age: Int64? = nil) {
        var configuration = UpgradeConfiguration()
        configuration.idle = .seconds(idle)
        configuration.maximumConnectionAge = age.map { .seconds($0) }
        let bytes = Array(name.utf8)
        let accepted = UpgradeOffer.Accepted(
            name: ByteRange(from: 0, to: bytes.count), isWebSocket: name == "websocket", accept: "")
        tunnel.request(accepted, bytes.span, TunnelLimits(configuration))
    }

    mutating func perform(_ event: TunnelEvent) -> [String] {
        switch event {
        case .client(let bytes): return receive(fromClient: bytes)
        case .upstream(let bytes): return receive(fromUpstream: bytes)
        case .clientCloses: return close(.downstream)
        case .upstreamCloses: return close(.upstream)
        case .end(let reason): return end(reason)
        case .wait(let milliseconds):
            now += milliseconds * TunnelBench.millisecond
            return check()
        case .drain:
            isDraining = true
            return check()
        case .clientStalls: isClientFlushed = false
        case .clientReads: lastWriteAt = now
        case .clientFlushed:
            isClientFlushed = true
            return advance()
        case .upstreamStalls: isUpstreamFlushed = false
        case .upstreamFlushed:
            isUpstreamFlushed = true
            return advance()
        }
        return []
    }

    private mutating func receive(fromClient bytes: [UInt8]) -> [String] {
        var actions: [String] = []
        var offset = 0
        while true {
            switch tunnel.nextFromDownstream(bytes.span, &offset, now: now) {
            case .pass(let range): actions.append("up \(range.count)")
            case .passHeader: actions.append("up header \(tunnel.fromDownstream.headerBytes)")
            case .sendClose: actions.append(closeUp)
            case .done: return actions + advance()
            case .violation: return actions + end(.clientViolation)
            }
        }
    }

    private mutating func receive(fromUpstream bytes: [UInt8]) -> [String] {
        var actions: [String] = []
        var offset = 0
        while true {
            switch tunnel.nextFromUpstream(bytes.span, &offset, now: now) {
            case .pass(let range): actions.append("down \(range.count)")
            case .passHeader: actions.append("down header \(tunnel.fromUpstream.headerBytes)")
            case .sendClose: return actions + [closeDown] + advance()
            case .done: return actions + advance()
            case .violation: return actions + end(.upstreamViolation)
            }
        }
    }

    private mutating func close(_ peer: Tunnel.Peer) -> [String] {
        switch tunnel.peerClosed(peer, now: now) {
        case .known: return []
        case .orderly: return advance()
        case .abrupt: return ["left"] + advance()
        }
    }

    private mutating func end(_ reason: CloseReason) -> [String] {
        switch tunnel.end(reason, now: now) {
        case .ignored: return []
        case .abort: return ["abort"]
        case .close:
            var actions: [String] = []
            if tunnel.dequeueClose(for: .upstream) { actions.append(closeUp) }
            if tunnel.dequeueClose(for: .downstream) { actions.append(closeDown) }
            return actions + advance()
        }
    }

    private mutating func advance() -> [String] {
        let found = tunnel.advance(
            now: now, isDownstreamFlushed: isClientFlushed, isUpstreamFlushed: isUpstreamFlushed)
        var actions: [String] = []
        if found.contains(.closeWriteUpstream) { actions.append("fin up") }
        if found.contains(.closeWriteDownstream) { actions.append("fin down") }
        if found.contains(.finish) { actions.append("finish") }
        return actions
    }

    private mutating func check() -> [String] {
        let found = tunnel.check(
            now: now, isDownstreamFlushed: isClientFlushed, lastWriteAt: lastWriteAt, isDraining: isDraining)
        switch found {
        case .none: return []
        case .end(let reason): return ["end \(reason)"] + end(reason)
        case .abort: return ["abort"]
        case .finish: return ["finish"]
        }
    }

    private var closeUp: String { "close up \(tunnel.closeReason.upstreamStatus.code)" }
    private var closeDown: String { "close down \(tunnel.closeReason.status.code)" }
}

/// A sequence of events, each with what the tunnel wants done then.
struct TunnelCase: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let events: [(TunnelEvent, [String])]

    init(_ name: String, _ events: [(TunnelEvent, [String])]) {
        testDescription = name
        self.events = events
    }

    /// Performs all of it.
    func run(_ bench: inout TunnelBench) {
        for (index, (event, expected)) in events.enumerated() {
            let actions = bench.perform(event)
            #expect(actions == expected, "event \(index): \(event)")
        }
    }
}
