private import CLinux
internal import MartletCore
internal import MartletDecisions

/// Long bodies in clear text: the kernel moves them from socket to socket, through a pipe (splice(2)).
///
/// Bytes in a pipe count as not received yet: they are counted, and complete a body, only when the receiving socket has
/// accepted them. So a transfer is always in the state it would be in if they were still in the sending socket's queue.
/// The side that filled the pipe is paused until it is empty again.
extension RequestForwarder {
    /// Moves a part of a request's body.
    /// - Returns: whether that is all there is to do now; otherwise the downstream connection has to be read.
    static func spliceBody(_ downstream: Handle<DownstreamConnection>, _ loop: inout LoopState) -> Bool {
        guard loop.downstreams.canSpliceRequest(downstream, &loop.exchanges, &loop.upstreams),
            let pipe = loop.pipes.acquire()
        else {
            return false
        }
        let exchange = loop.downstreams[downstream].exchange
        let count = loop.pipes.fill(
            pipe, from: loop.downstreams[downstream].transport.fd, atMost: loop.exchanges[exchange].body.remaining)
        guard count > 0 else {
            let isDry = count < 0 && martlet_errno() == EAGAIN
            loop.pipes.release(pipe)
            if isDry { loop.downstreams[downstream].transport.mayHaveUnread = false }
            return isDry
        }
        loop.downstreams[downstream].pipe = pipe
        loop.downstreams[downstream].transport.isBulk = SpliceRules.isBulk(count)
        loop.exchanges[exchange].armBody(&loop.downstreams, &loop.context)
        drainRequestPipe(downstream, &loop)
        return true
    }

    /// The client can accept more of a response in a pipe.
    static func resumeSplice(toDownstream downstream: Handle<DownstreamConnection>, _ loop: inout LoopState) {
        let exchange = loop.downstreams[downstream].exchange
        guard !exchange.isNone, !loop.exchanges[exchange].upstream.isNone,
            !loop.upstreams[loop.exchanges[exchange].upstream].pipe.isNone
        else { return }
        drainResponsePipe(loop.exchanges[exchange].upstream, &loop)
    }

    /// The upstream can accept more of a body in a pipe.
    static func resumeSplice(toUpstream upstream: Handle<UpstreamConnection>, _ loop: inout LoopState) {
        let exchange = loop.upstreams[upstream].exchange
        guard !exchange.isNone, !loop.downstreams[loop.exchanges[exchange].downstream].pipe.isNone else { return }
        drainRequestPipe(loop.exchanges[exchange].downstream, &loop)
    }

    private static func drainRequestPipe(_ downstream: Handle<DownstreamConnection>, _ loop: inout LoopState) {
        let (exchange, pipe) = (loop.downstreams[downstream].exchange, loop.downstreams[downstream].pipe)
        let upstream = loop.exchanges[exchange].upstream
        let drained = drainPipe(pipe, into: loop.upstreams[upstream].transport.fd, &loop.context)
        loop.exchanges[exchange].body.skip(drained.consumed)
        loop.exchanges[exchange].record.bytesIn &+= drained.consumed
        loop.exchanges[exchange].pace.add(drained.consumed)
        if drained.hasFailed {
            // If the upstream closed: read its early response.
            loop.upstreams.sendFailed(upstream, &loop.exchanges, &loop.context)
        } else if drained.sent > 0, !loop.exchanges[exchange].body.isComplete {
            loop.exchanges[loop.upstreams[upstream].exchange].armResponseTimeout(
                upstream, &loop.upstreams, &loop.context)
        }
        guard drained.isOver else {
            loop.downstreams[downstream].isPaused = true
            return
        }
        loop.downstreams.dropPipe(of: downstream, &loop.context)
        loop.downstreams[downstream].isPaused = false
        if loop.exchanges[exchange].body.isComplete {
            requestCompleted(exchange, &loop)
        } else {
            loop.exchanges[exchange].armBody(&loop.downstreams, &loop.context)
        }
        loop.downstreams.markReady(downstream, &loop.context)
    }

    static func drainResponsePipe(_ upstream: Handle<UpstreamConnection>, _ loop: inout LoopState) {
        let (exchange, pipe) = (loop.upstreams[upstream].exchange, loop.upstreams[upstream].pipe)
        let downstream = loop.exchanges[exchange].downstream
        let drained = drainPipe(pipe, into: loop.downstreams[downstream].transport.fd, &loop.context)
        loop.exchanges[exchange].record.bytesOut &+= drained.sent
        loop.upstreams[upstream].response.skip(drained.sent)
        guard !drained.hasFailed else { return loop.abandon(downstream) }
        let wasPaused = loop.upstreams[upstream].isPaused
        let isProgress = drained.isProgress(wasPaused: wasPaused)
        if isProgress { loop.downstreams[downstream].transport.lastWriteAt = loop.now }
        guard drained.isOver else {
            loop.upstreams[upstream].isPaused = true
            if loop.exchanges[exchange].body.isComplete, isProgress {
                loop.downstreams.armWrite(downstream, &loop.context)
            }
            return
        }
        loop.upstreams.dropPipe(of: upstream, &loop.context)
        if wasPaused {
            loop.upstreams[upstream].isPaused = false
            loop.upstreams.arm(upstream, at: loop.now &+ loop.exchanges[exchange].forwarding.idleTimeout, &loop.context)
            // The rest is up to the upstream connection, which has its own deadline.
            if loop.exchanges[exchange].body.isComplete, !loop.downstreams[downstream].probe.isPending {
                loop.downstreams.arm(downstream, at: .max, &loop.context)
            }
        }
        guard loop.upstreams[upstream].response.remaining == 0 else {
            return loop.upstreams.markReady(upstream, &loop.context)
        }
        loop.finishResponse(upstream)
        guard loop.upstreams[upstream].isAlive, loop.upstreams[upstream].phase == .idle else { return }
        loop.upstreams.checkIdle(upstream, received: ReceiveBuffer.size, &loop.context)
    }

    private static func drainPipe(_ pipe: PipeHandle, into socket: Int32, _ context: inout LoopContext) -> PipeDrain {
        let (sent, hasFailed) = context.scratch.pipes.drain(pipe, into: socket)
        return PipeDrain(sent: sent, left: context.scratch.pipes.byteCount(pipe), hasFailed: hasFailed)
    }
}
