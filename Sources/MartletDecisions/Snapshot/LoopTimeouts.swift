package import MartletConfig
internal import MartletCore

/// The downstream timeouts in nanoseconds.
package struct LoopTimeouts: Sendable {
    package let requestHead: Int64
    package let handshake: Int64
    package let idle: Int64
    package let bodyIdle: Int64

    package init(_ timeouts: ServerTimeouts) {
        requestHead = timeouts.requestHead.boundedNanoseconds
        handshake = timeouts.tlsHandshake.boundedNanoseconds
        idle = timeouts.idle.boundedNanoseconds
        bodyIdle = timeouts.bodyIdle.boundedNanoseconds
    }
}
