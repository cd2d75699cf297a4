internal import MartletCore
package import MartletHTTP

/// When bodies are spliced from socket to socket: long ones, in clear text over HTTP/1 on both sides, while nothing is
/// buffered before them.
package enum SpliceRules {
    /// Shorter remainders are copied: two system calls and the pipe cost more.
    static let minimumRemainder = 64 * 1024
    /// Smaller transfers are not bulk (any more): a single read and write cost less.
    static let minimumTransfer = 16 * 1024

    /// Whether the rest of a message is long enough, and ends at a known byte.
    @inline(__always)
    package static func isWorthwhile(_ framing: BodyFraming, remaining: Int) -> Bool {
        guard case .length = framing else { return false }
        return remaining >= minimumRemainder
    }

    /// Whether the sender of a transfer of `count` bytes is likely to have more.
    @inline(__always)
    package static func isBulk(_ count: Int) -> Bool { count >= minimumTransfer }
}

/// The outcome of moving a pipe's bytes into a socket.
package struct PipeDrain {
    /// Bytes that the socket accepted.
    package let sent: Int
    /// Bytes that are still in the pipe.
    package let left: Int
    /// The socket has failed.
    package let hasFailed: Bool

    package init(sent: Int, left: Int, hasFailed: Bool) {
        self.sent = sent
        self.left = left
        self.hasFailed = hasFailed
    }

    /// Bytes of a request that count as received: an upstream that closed gets no more of it, and the rest is
    /// discarded.
    package var consumed: Int { hasFailed ? sent &+ left : sent }

    /// Whether the pipe has served its purpose.
    package var isOver: Bool { hasFailed || left == 0 }

    /// Whether the receiver's deadline starts anew: it accepted bytes, or was not waited for.
    package func isProgress(wasPaused: Bool) -> Bool { sent > 0 || !wasPaused }
}
