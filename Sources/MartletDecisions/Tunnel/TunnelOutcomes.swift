package import MartletHTTP

/// What a tunnel wants done.
extension Tunnel {
    /// One of the two sides.
    package enum Peer: UInt8 {
        case downstream
        case upstream
    }

    /// What to do with the next bytes that a side has sent.
    package enum Step: Equatable {
        /// Forward these bytes.
        case pass(ByteRange)
        /// Forward the header of a frame that arrived in pieces.
        case passHeader
        /// Send a Close frame to the other side; of what follows nothing is forwarded.
        case sendClose
        /// All bytes were consumed.
        case done
        /// The side broke the protocol of a tunnel that is open: end it.
        case violation
    }

    /// What to do so that a tunnel advances towards its end, in this order.
    package struct Actions: OptionSet {
        package let rawValue: UInt8

        @inline(__always)
        package init(rawValue: UInt8) { self.rawValue = rawValue }

        /// Close the writing direction to the upstream.
        package static let closeWriteUpstream = Actions(rawValue: 1)
        /// Close the writing direction to the client.
        package static let closeWriteDownstream = Actions(rawValue: 2)
        /// Both sides are done.
        package static let finish = Actions(rawValue: 4)
    }

    /// How a tunnel ends when the gateway ends it.
    package enum Ending {
        /// It is not open, or already ends.
        case ignored
        /// Each side is sent Close between two frames.
        case close
        /// By a reset: no side may mistake it for an orderly end.
        case abort
    }

    /// What it means that a side has closed its sending direction.
    package enum PeerEnd {
        /// Nothing new.
        case known
        case orderly
        /// It left an open WebSocket in which no side has sent Close.
        case abrupt
    }

    /// The result of a regular check.
    package enum Check: Equatable {
        case none
        case end(CloseReason)
        /// Reset both sides.
        case abort
        /// The sides were sent everything, Close included.
        case finish
    }
}
