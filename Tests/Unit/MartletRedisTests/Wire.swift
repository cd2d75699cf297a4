import MartletCore

@testable import MartletRedis

let start = MonotonicTime(nanoseconds: 0)
let soon = MonotonicTime(nanoseconds: 1_000_000)
let deadline = MonotonicTime(nanoseconds: 500_000_000)

let subscribed = "*3\r\n$9\r\nsubscribe\r\n$2\r\nch\r\n:1\r\n"

/// A message as it comes on a channel.
func message(_ payload: String, on channel: String = "ch") -> String {
    "*3\r\n$7\r\nmessage\r\n$\(channel.utf8.count)\r\n\(channel)\r\n$\(payload.utf8.count)\r\n\(payload)\r\n"
}

/// Settings of a connection that listens.
var listening: RedisConnectionState.Settings {
    var settings = RedisConnectionState.Settings()
    settings.channel = "ch"
    return settings
}

/// A connection driven by hand; actions are noted as text.
struct Wire: ~Copyable {
    var state: RedisConnectionState
    private(set) var log: [String] = []

    var isReady: Bool { state.isReady }
    var nextDeadline: MonotonicTime? { state.nextDeadline }

    init(_ settings: RedisConnectionState.Settings = .init(), greeted: Bool = true) throws {
        var fresh = try RedisConnectionState(settings)
        try fresh.begin(at: start, deadline: deadline)
        state = fresh
        guard greeted else { return }
        receive("+OK\r\n+PONG\r\n" + (settings.channel == nil ? "" : subscribed))
        log = []
        _ = sent()
    }

    mutating func sent() -> String {
        var wire = ByteBuffer()
        state.takeOutput(into: &wire)
        return String(decoding: wire.array, as: UTF8.self)
    }

    mutating func ask(
        _ ticket: UInt64, _ expectation: RedisExpectation = .anything, by limit: MonotonicTime = deadline
    ) throws {
        try state.submit(ticket, [Array("X".utf8)], expecting: expectation, at: start, deadline: limit)
    }

    mutating func receive(_ text: String, pieces: Int = .max) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let piece = Array(rest.prefix(pieces))
            rest = rest.dropFirst(pieces)
            note(unsafe piece.withUnsafeBufferPointer { unsafe state.received($0, at: soon) })
        }
    }

    mutating func expire(_ now: MonotonicTime) { note(state.expire(at: now)) }

    mutating func lose() { note(state.lost(StoreError(code: "io.closed_by_peer", message: ""))) }

    private mutating func note(_ actions: [RedisConnectionState.Action]) {
        for action in actions {
            switch action {
            case .ready: log.append("ready")
            case .reply(let ticket, let reply, _): log.append("\(ticket): \(reply)")
            case .failed(let ticket, let error): log.append("\(ticket)! \(error.code)")
            case .message(let payload): log.append("message \(String(decoding: payload, as: UTF8.self))")
            case .close(let error): log.append("close \(error.code)")
            }
        }
    }
}
