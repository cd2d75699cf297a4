internal import MartletConfig
internal import MartletCore

/// The downstream timeouts in nanoseconds.
struct LoopTimeouts: Sendable {
    let requestHead: Int64
    let handshake: Int64
    let idle: Int64
    let bodyIdle: Int64

    init(_ timeouts: ServerTimeouts) {
        requestHead = timeouts.requestHead.boundedNanoseconds
        handshake = timeouts.tlsHandshake.boundedNanoseconds
        idle = timeouts.idle.boundedNanoseconds
        bodyIdle = timeouts.bodyIdle.boundedNanoseconds
    }
}

extension Duration {
    /// Nanoseconds, at most a hundred years: safe to add to the clock.
    var boundedNanoseconds: Int64 { min(max(wholeNanoseconds, 0), 3_155_760_000 * 1_000_000_000) }
}
