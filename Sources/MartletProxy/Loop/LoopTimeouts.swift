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
