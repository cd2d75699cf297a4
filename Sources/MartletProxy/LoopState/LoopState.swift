internal import MartletAuthenticator
internal import MartletDecisions

/// The exchanges of a loop and the connections on both sides of them: writes to clients and upstreams, responds in the
/// gateway's own name, and ends exchanges and connections.
///
/// It is the lowest layer of a loop, and consists of the owners below all layers. The ``EventLoop`` owns it, and lends
/// it to the layers between (``RequestForwarder``, ``ResponseReader``, ``RequestRouter``) for each call.
struct LoopState: ~Copyable {
    var context: LoopContext
    var downstreams: DownstreamConnections
    var upstreams = UpstreamConnections()
    var exchanges = Exchanges()
    /// Requests that wait before they are sent.
    var waiting = DelayedRequests()

    init(_ context: consuming LoopContext, acceptor: consuming Acceptor) {
        self.context = context
        downstreams = DownstreamConnections(acceptor: acceptor)
    }
}

// What many files use of the context.
extension LoopState {
    /// The monotonic clock, read once per batch, in nanoseconds.
    @inline(__always)
    var now: Int64 { context.now }

    /// Both clocks.
    @inline(__always)
    var time: LoopTime { context.time }

    var mailbox: Mailbox { context.mailbox }

    var verifier: Verifier { context.verifier }

    var debug: DebugLog { context.debug }

    @inline(__always)
    var isDraining: Bool { context.isDraining }

    /// When a drain aborts what is left; `max` while serving.
    var drainDeadline: Int64 { context.drainDeadline }

    var receiveBuffer: ReceiveBuffer {
        @inline(__always) _read { yield context.scratch.receiveBuffer }
    }

    var pipes: SplicePipes {
        @inline(__always) _read { yield context.scratch.pipes }
        @inline(__always) _modify { yield &context.scratch.pipes }
    }
}
