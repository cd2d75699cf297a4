import MartletTesting
import Testing

@testable import MartletDecisions

/// What one side of a WebSocket sends, in pieces of any length, and how much of it was forwarded.
private struct SentFrames {
    private let text: [UInt8]
    /// `nil` for a side that never sends Close.
    private let close: [UInt8]?
    private var pending: [UInt8] = []
    /// Where frames begin and end.
    private(set) var boundaries: Set<Int> = [0]
    /// Where the side's own Close frame ends.
    private(set) var closeEnd = Int.max
    private var end = 0
    private(set) var sent = 0
    var forwarded = 0

    init(text: [UInt8], close: [UInt8]?) {
        self.text = text
        self.close = close
    }

    /// Whether a complete Close frame of the side was forwarded.
    var hasForwardedClose: Bool { forwarded >= closeEnd }

    /// The next bytes, up to a few frames at a time; rarely, one of them is a Close frame.
    mutating func next(_ random: inout SeededGenerator) -> [UInt8] {
        while pending.count < 24 {
            let isClose = Int.random(in: 0..<24, using: &random) == 0
            let frame = isClose ? close ?? text : text
            pending += frame
            end += frame.count
            boundaries.insert(end)
            if isClose, close != nil { closeEnd = min(closeEnd, end) }
        }
        let count = Int.random(in: 0...pending.count, using: &random)
        defer { pending.removeFirst(count) }
        sent += count
        return Array(pending[..<count])
    }
}

/// One tunnel from its switch to its end, and what must never happen on the way.
private struct TunnelRun: ~Copyable {
    private var bench = TunnelBench()
    private var client: SentFrames
    private var upstream: SentFrames
    /// No side disconnects or sends Close, and the gateway does not end it.
    private let isPlain: Bool
    /// The sides that were sent a Close frame of the gateway.
    private var closed: Set<Substring> = []
    /// The sides whose writing direction was closed.
    private var finished: Set<Substring> = []
    /// The sides that have disconnected.
    private var departed: Set<Substring> = []
    private(set) var isOver = false
    private(set) var errors: [String] = []

    init(isPlain: Bool = false) {
        self.isPlain = isPlain
        client = SentFrames(text: WSFrame.clientText, close: isPlain ? nil : WSFrame.clientClose)
        upstream = SentFrames(text: WSFrame.serverText, close: isPlain ? nil : WSFrame.serverClose)
    }

    /// Bytes that were not forwarded: a part of a header at most.
    var held: [Int] { [client.sent - client.forwarded, upstream.sent - upstream.forwarded] }

    mutating func perform(_ event: TunnelEvent) {
        for action in bench.perform(event) { record(action.split(separator: " ")) }
    }

    mutating func performAny(_ random: inout SeededGenerator) {
        switch Int.random(in: 0..<(isPlain ? 37 : 40), using: &random) {
        case 0..<14: send(.downstream, &random)
        case 14..<28: send(.upstream, &random)
        case 28: perform(.clientStalls)
        case 29: perform(.clientFlushed)
        case 30: perform(.upstreamStalls)
        case 31: perform(.upstreamFlushed)
        case 32: perform(.clientReads)
        case 37: perform(.end(.revoked))
        case 38: depart("up", .clientCloses, &random)
        case 39: depart("down", .upstreamCloses, &random)
        default: perform(.wait(30))
        }
    }

    /// A side sends something, unless it has disconnected.
    private mutating func send(_ peer: Tunnel.Peer, _ random: inout SeededGenerator) {
        switch peer {
        case .downstream where !departed.contains("up"):
            let bytes = client.next(&random)
            perform(.client(bytes))
        case .upstream where !departed.contains("down"):
            let bytes = upstream.next(&random)
            perform(.upstream(bytes))
        case .downstream, .upstream: break
        }
    }

    /// A side disconnects, in one of three cases.
    private mutating func depart(_ direction: Substring, _ event: TunnelEvent, _ random: inout SeededGenerator) {
        guard Int.random(in: 0..<3, using: &random) == 0 else { return }
        departed.insert(direction)
        perform(event)
    }

    private mutating func record(_ words: [Substring]) {
        if isOver { errors.append("\(words) after the end") }
        switch words[0] {
        case "up", "down": forward(words[0], Int(words[words.count - 1]) ?? -1)
        case "close": sendClose(words[1])
        case "fin": if !finished.insert(words[1]).inserted { errors.append("closed twice: \(words[1])") }
        case "finish", "abort": isOver = true
        case "left", "end": break
        default: errors.append("unknown: \(words)")
        }
    }

    private mutating func forward(_ direction: Substring, _ count: Int) {
        if count <= 0 { errors.append("no bytes \(direction)") }
        if closed.contains(direction) { errors.append("bytes \(direction) after Close") }
        if finished.contains(direction) { errors.append("bytes \(direction) after the end of the direction") }
        if direction == "up" { client.forwarded += count } else { upstream.forwarded += count }
    }

    private mutating func sendClose(_ direction: Substring) {
        let frames = direction == "up" ? client : upstream
        if !closed.insert(direction).inserted { errors.append("two Close frames \(direction)") }
        if finished.contains(direction) { errors.append("Close \(direction) after the end of the direction") }
        if !frames.boundaries.contains(frames.forwarded) { errors.append("Close \(direction) within a frame") }
        if frames.hasForwardedClose { errors.append("Close \(direction) after the side's own") }
    }
}

@Suite struct TunnelRandomTests {
    @Test(arguments: UInt64(1)...8)
    func `whatever happens, each side gets whole frames, one Close, and nothing after it`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for number in 0..<100 {
            var run = TunnelRun()
            for _ in 0..<60 where !run.isOver { run.performAny(&random) }
            let errors = run.errors
            #expect(errors == [], "run \(number)")
        }
    }

    @Test(arguments: UInt64(21)...24)
    func `everything passes as it comes, but for a part of a header`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for number in 0..<100 {
            var run = TunnelRun(isPlain: true)
            for _ in 0..<60 {
                run.performAny(&random)
                let held = run.held
                // The client's header has six bytes, the upstream's two.
                #expect((0..<6).contains(held[0]) && (0..<2).contains(held[1]), "run \(number)")
            }
            let (isOver, errors) = (run.isOver, run.errors)
            #expect(!isOver && errors == [], "run \(number)")
        }
    }

    @Test(arguments: UInt64(11)...14)
    func `a tunnel that the gateway ends is over within one and a half seconds`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for number in 0..<100 {
            var run = TunnelRun()
            for _ in 0..<20 where !run.isOver { run.performAny(&random) }
            if !run.isOver { run.perform(.end(.expired)) }
            for _ in 0..<15 where !run.isOver { run.perform(.wait(100)) }
            let (isOver, errors) = (run.isOver, run.errors)
            #expect(isOver && errors == [], "run \(number)")
        }
    }
}
