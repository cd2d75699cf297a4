import MartletCore

@testable import MartletRedis

let start = MonotonicTime(nanoseconds: 0)
let soon = MonotonicTime(nanoseconds: 1_000_000)
let deadline = MonotonicTime(nanoseconds: 500_000_000)

let subscribed = "*3\r\n$9\r\nsubscribe\r\n$2\r\nch\r\n:1\r\n"

/// A message pushed on a channel.
func message(_ payload: String, on channel: String = "ch") -> String {
    "*3\r\n$7\r\nmessage\r\n$\(channel.utf8.count)\r\n\(channel)\r\n$\(payload.utf8.count)\r\n\(payload)\r\n"
}

/// Settings of a subscribed connection.
var subscribing: RedisConnectionState.Settings {
    var settings = RedisConnectionState.Settings()
    settings.channel = "ch"
    return settings
}

/// A connection state without a transport; actions are recorded as text.
struct TestConnection: ~Copyable {
    var state: RedisConnectionState
    private(set) var log: [String] = []

    var isReady: Bool { state.isReady }
    var nextDeadline: MonotonicTime? { state.nextDeadline }

    init(_ settings: RedisConnectionState.Settings = .init(), ready: Bool = true) throws {
        var fresh = try RedisConnectionState(settings)
        try fresh.begin(at: start, deadline: deadline)
        state = fresh
        guard ready else { return }
        receive("+OK\r\n+PONG\r\n" + (settings.channel == nil ? "" : subscribed))
        log = []
        _ = sent()
    }

    mutating func sent() -> String {
        var output = ByteBuffer()
        state.takeOutput(into: &output)
        return String(decoding: output.array, as: UTF8.self)
    }

    mutating func submit(
        _ ticket: UInt64, _ expectation: RedisExpectation = .anything, by limit: MonotonicTime = deadline
    ) throws {
        try state.submit(ticket, [Array("X".utf8)], expecting: expectation, at: start, deadline: limit)
    }

    mutating func receive(_ text: String, chunkSize: Int = .max) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let chunk = Array(rest.prefix(chunkSize))
            rest = rest.dropFirst(chunkSize)
            record(unsafe chunk.withUnsafeBufferPointer { unsafe state.received($0, at: soon) })
        }
    }

    mutating func expire(_ now: MonotonicTime) { record(state.expire(at: now)) }

    mutating func lose() { record(state.lost(StoreError(code: "io.closed_by_peer", message: ""))) }

    private mutating func record(_ actions: [RedisConnectionState.Action]) {
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
