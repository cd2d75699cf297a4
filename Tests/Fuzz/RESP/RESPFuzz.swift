import MartletCore
import MartletRedis

/// What a connection came to: its actions as text, in order.
private struct Run {
    var log: [String] = []
    var answered: [UInt64: Int] = [:]
    var isClosed = false

    mutating func note(_ actions: [RedisConnectionState.Action]) {
        for action in actions {
            precondition(!isClosed, "an action after the end")
            switch action {
            case .ready: log.append("ready")
            case .reply(let ticket, let reply, _):
                answered[ticket, default: 0] += 1
                log.append("\(ticket): \(reply)")
            case .failed(let ticket, let error):
                answered[ticket, default: 0] += 1
                log.append("\(ticket)! \(error.code)")
            case .message(let payload): log.append("message \(payload)")
            case .close(let error):
                isClosed = true
                log.append("close \(error.code)")
            }
        }
    }
}

private let expectations: [RedisExpectation] = [
    .anything, .value, .acknowledgement, .acknowledgementOrNothing, .integer, .array,
]

/// Sends the hello and eight commands, and feeds the bytes in pieces; every command completes exactly once.
private func drive(_ bytes: UnsafeBufferPointer<UInt8>, choice: Int, piece: Int) throws(StoreError) -> Run {
    let now = MonotonicTime(nanoseconds: 0)
    var settings = RedisConnectionState.Settings()
    settings.limits.bytes = 4096
    settings.limits.elements = 256
    var state = try RedisConnectionState(settings)
    var run = Run()
    try state.begin(at: now, deadline: .never)
    let greeting = Array("+OK\r\n+PONG\r\n".utf8)
    run.note(greeting.withUnsafeBufferPointer { state.received($0, at: now) })
    for ticket in 0..<8 {
        let expectation = expectations[(choice + ticket) % expectations.count]
        try state.submit(UInt64(ticket), [[0x58]], expecting: expectation, at: now, deadline: .never)
    }
    var start = 0
    while start < bytes.count {
        let end = min(start + piece, bytes.count)
        run.note(state.received(UnsafeBufferPointer(rebasing: bytes[start..<end]), at: now))
        start = end
    }
    run.note(state.lost(StoreError(code: "io.closed_by_peer", message: "")))
    precondition(run.isClosed && run.answered.count == 8 && run.answered.values.allSatisfy { $0 == 1 })
    return run
}

/// Sends the hello of a subscriber and a ping, and feeds the bytes in pieces.
private func listen(_ bytes: UnsafeBufferPointer<UInt8>, piece: Int) throws(StoreError) -> Run {
    let now = MonotonicTime(nanoseconds: 0)
    var settings = RedisConnectionState.Settings()
    settings.limits.bytes = 4096
    settings.limits.elements = 256
    settings.maximumMessage = 100
    settings.channel = "ch"
    var state = try RedisConnectionState(settings)
    var run = Run()
    try state.begin(at: now, deadline: .never)
    let greeting = Array("+OK\r\n+PONG\r\n*3\r\n$9\r\nsubscribe\r\n$2\r\nch\r\n:1\r\n".utf8)
    run.note(greeting.withUnsafeBufferPointer { state.received($0, at: now) })
    try state.heartbeat(at: now, deadline: .never)
    var start = 0
    while start < bytes.count {
        let end = min(start + piece, bytes.count)
        run.note(state.received(UnsafeBufferPointer(rebasing: bytes[start..<end]), at: now))
        start = end
    }
    run.note(state.lost(StoreError(code: "io.closed_by_peer", message: "")))
    precondition(run.isClosed && run.answered.isEmpty && run.log.first == "ready")
    return run
}

/// A reply that is too large and malformed as well is found to be the one or the other, by what came of it first.
private func expectSame(_ whole: Run, _ pieces: Run) {
    let isTooLarge = { (line: String) in line.contains("tooLarge") || line.contains("redis.reply_too_large") }
    guard !(whole.log + pieces.log).contains(where: isTooLarge) else { return }
    precondition(whole.log == pieces.log, "the pieces changed the outcome")
}

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzRESP(_ data: UnsafePointer<UInt8>, _ count: Int) -> Int32 {
    guard count > 1 else { return 0 }
    let choice = Int(data[0])
    let bytes = UnsafeBufferPointer(start: data + 1, count: count - 1)
    do {
        let piece = choice % 7 + 1
        try expectSame(drive(bytes, choice: choice, piece: count), drive(bytes, choice: choice, piece: piece))
        try expectSame(listen(bytes, piece: count), listen(bytes, piece: piece))
    } catch {
        preconditionFailure("\(error)")
    }
    return 0
}
