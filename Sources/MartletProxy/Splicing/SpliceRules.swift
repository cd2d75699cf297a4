internal import MartletCore
internal import MartletHTTP

/// When bodies are spliced from socket to socket: long ones, in clear text over HTTP/1 on both sides, while nothing is
/// buffered before them.
enum SpliceRules {
    /// Shorter remainders are copied: two system calls and the pipe cost more.
    static let minimumRemainder = 64 * 1024
    /// Smaller transfers are not bulk (any more): a single read and write cost less.
    static let minimumTransfer = 16 * 1024

    /// Whether the rest of a message is long enough, and ends at a known byte.
    @inline(__always)
    static func isWorthwhile(_ framing: BodyFraming, remaining: Int) -> Bool {
        guard case .length = framing else { return false }
        return remaining >= minimumRemainder
    }

    /// Whether the sender of a transfer of `count` bytes is likely to have more.
    @inline(__always)
    static func isBulk(_ count: Int) -> Bool { count >= minimumTransfer }
}

/// The outcome of moving a pipe's bytes into a socket.
struct PipeDrain {
    /// Bytes that the socket accepted.
    let sent: Int
    /// Bytes that are still in the pipe.
    let left: Int
    /// The socket has failed.
    let hasFailed: Bool

    /// Bytes of a request that count as received: an upstream that closed gets no more of it, and the rest is
    /// discarded.
    var consumed: Int { hasFailed ? sent &+ left : sent }

    /// Whether the pipe has served its purpose.
    var isOver: Bool { hasFailed || left == 0 }

    /// Whether the receiver's deadline starts anew: it accepted bytes, or was not waited for.
    func isProgress(wasPaused: Bool) -> Bool { sent > 0 || !wasPaused }
}

extension Exchange {
    /// Whether the head for the upstream was sent completely.
    @inline(__always)
    var hasSentHead: Bool { forwarding.head.isSent }

    /// Whether the rest of the request's body may be spliced.
    @inline(__always)
    var hasSpliceableBody: Bool {
        responder == .upstream && SpliceRules.isWorthwhile(body.framing, remaining: body.remaining)
            && heldBody.isEmpty && hasSentHead && !bodyWatch.isActive
    }
}

extension DownstreamConnection {
    /// Whether the body of its request may be moved into a pipe.
    @inline(__always)
    var canSpliceRequest: Bool {
        kind == .http1 && !origin.rules.isSecure && phase == .exchange && pipe.isNone && reader.input.isEmpty
    }

    /// Whether a response may be moved from a pipe to it.
    @inline(__always)
    var acceptsSplicedResponse: Bool { kind == .http1 && !origin.rules.isSecure && transport.output.isEmpty }
}

extension UpstreamConnection {
    /// Whether the rest of its response may be moved into a pipe.
    @inline(__always)
    var canSpliceResponse: Bool {
        kind == .http1 && !transport.isSecure && phase == .body && pipe.isNone
            && SpliceRules.isWorthwhile(response.framing, remaining: response.remaining) && input.isEmpty
    }

    /// Whether the bytes of a body may be sent to its socket without being buffered first.
    @inline(__always)
    var acceptsDirectBody: Bool { kind == .http1 && !transport.isSecure && isUp && output.isEmpty }

    /// Whether a request may be moved from a pipe to it.
    @inline(__always)
    var acceptsSplicedRequest: Bool { acceptsDirectBody && !transport.isReadClosed && transport.output.isEmpty }
}

extension UpstreamResponse {
    /// Counts bytes that were spliced to the client.
    @inline(__always)
    mutating func skip(_ length: Int) { remaining &-= length }
}
