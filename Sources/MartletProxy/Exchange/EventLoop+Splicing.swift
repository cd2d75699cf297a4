private import CLinux
internal import MartletCore
internal import MartletHTTP
internal import MartletIO

/// Long bodies in clear text: the kernel moves them from socket to socket, through a pipe (splice(2)).
///
/// Bytes in a pipe count as not received yet: they are counted, and complete a body, only when the receiving socket has
/// accepted them. So a transfer is always in the state it would be in if they were still in the sending socket's queue.
/// The side that filled the pipe is paused until it is empty again.
extension EventLoop {
    // MARK: Responses

    /// Moves a part of a response's body.
    /// - Returns: whether that is all there is to do now; otherwise the upstream connection has to be read.
    mutating func spliceResponse(_ upstream: Handle<UpstreamConnection>) -> Bool {
        guard canSpliceResponse(upstream), let pipe = pipes.acquire() else { return false }
        let count = pipes.fill(
            pipe, from: upstreams[upstream].transport.fd, atMost: upstreams[upstream].response.remaining)
        guard count > 0 else {
            // An end of stream or an error is left to the read.
            let isDry = count < 0 && martlet_errno() == EAGAIN
            pipes.release(pipe)
            return isDry
        }
        upstreams[upstream].pipe = pipe
        upstreams[upstream].transport.isBulk = SpliceRules.isBulk(count)
        arm(upstream: upstream, at: now &+ exchanges[upstreams[upstream].exchange].forwarding.idleTimeout)
        drainResponsePipe(upstream)
        return true
    }

    private func canSpliceResponse(_ upstream: Handle<UpstreamConnection>) -> Bool {
        guard upstreams[upstream].canSpliceResponse else { return false }
        let exchange = upstreams[upstream].exchange
        guard !exchange.isNone, !isTunnel(exchange) else { return false }
        return downstreams[exchanges[exchange].downstream].acceptsSplicedResponse
    }

    /// The client can accept more of a response in a pipe.
    mutating func resumeSplice(toDownstream downstream: Handle<DownstreamConnection>) {
        let exchange = downstreams[downstream].exchange
        guard !exchange.isNone, !exchanges[exchange].upstream.isNone,
            !upstreams[exchanges[exchange].upstream].pipe.isNone
        else { return }
        drainResponsePipe(exchanges[exchange].upstream)
    }

    private mutating func drainResponsePipe(_ upstream: Handle<UpstreamConnection>) {
        let (exchange, pipe) = (upstreams[upstream].exchange, upstreams[upstream].pipe)
        let downstream = exchanges[exchange].downstream
        let drained = drainPipe(pipe, into: downstreams[downstream].transport.fd)
        exchanges[exchange].record.bytesOut &+= drained.sent
        upstreams[upstream].response.skip(drained.sent)
        guard !drained.hasFailed else { return abandon(downstream) }
        let wasPaused = upstreams[upstream].isPaused
        let isProgress = drained.isProgress(wasPaused: wasPaused)
        if isProgress { downstreams[downstream].transport.lastWriteAt = now }
        guard drained.isOver else {
            upstreams[upstream].isPaused = true
            if exchanges[exchange].body.isComplete, isProgress { armWrite(downstream) }
            return
        }
        dropPipe(ofUpstream: upstream)
        if wasPaused {
            upstreams[upstream].isPaused = false
            arm(upstream: upstream, at: now &+ exchanges[exchange].forwarding.idleTimeout)
            // The rest is up to the upstream connection, which has its own deadline.
            if exchanges[exchange].body.isComplete, !downstreams[downstream].probe.isPending {
                arm(downstream: downstream, at: .max)
            }
        }
        guard upstreams[upstream].response.remaining == 0 else { return markReady(upstream: upstream) }
        // Discard what other requests left.
        staging.removeAll()
        finishResponse(upstream)
        guard upstreams[upstream].isAlive, upstreams[upstream].phase == .idle else { return }
        checkIdle(upstream, received: ReceiveBuffer.size)
    }

    // MARK: Requests

    /// Moves a part of a request's body.
    /// - Returns: whether that is all there is to do now; otherwise the downstream connection has to be read.
    mutating func spliceBody(_ downstream: Handle<DownstreamConnection>) -> Bool {
        guard canSpliceRequest(downstream), let pipe = pipes.acquire() else { return false }
        let exchange = downstreams[downstream].exchange
        let count = pipes.fill(
            pipe, from: downstreams[downstream].transport.fd, atMost: exchanges[exchange].body.remaining)
        guard count > 0 else {
            let isDry = count < 0 && martlet_errno() == EAGAIN
            pipes.release(pipe)
            if isDry { downstreams[downstream].transport.mayHaveUnread = false }
            return isDry
        }
        downstreams[downstream].pipe = pipe
        downstreams[downstream].transport.isBulk = SpliceRules.isBulk(count)
        armBody(exchange)
        drainRequestPipe(downstream)
        return true
    }

    private func canSpliceRequest(_ downstream: Handle<DownstreamConnection>) -> Bool {
        guard downstreams[downstream].canSpliceRequest else { return false }
        let exchange = downstreams[downstream].exchange
        guard exchanges[exchange].hasSpliceableBody, !isTunnel(exchange) else { return false }
        let upstream = exchanges[exchange].upstream
        return !upstream.isNone && upstreams[upstream].acceptsSplicedRequest
    }

    /// The upstream can accept more of a body in a pipe.
    mutating func resumeSplice(toUpstream upstream: Handle<UpstreamConnection>) {
        let exchange = upstreams[upstream].exchange
        guard !exchange.isNone, !downstreams[exchanges[exchange].downstream].pipe.isNone else { return }
        drainRequestPipe(exchanges[exchange].downstream)
    }

    private mutating func drainRequestPipe(_ downstream: Handle<DownstreamConnection>) {
        let (exchange, pipe) = (downstreams[downstream].exchange, downstreams[downstream].pipe)
        let upstream = exchanges[exchange].upstream
        let drained = drainPipe(pipe, into: upstreams[upstream].transport.fd)
        exchanges[exchange].body.skip(drained.consumed)
        exchanges[exchange].record.bytesIn &+= drained.consumed
        exchanges[exchange].progress.add(drained.consumed)
        if drained.hasFailed {
            // If the upstream closed: read its early response.
            sendFailed(upstream)
        } else if drained.sent > 0, !exchanges[exchange].body.isComplete {
            armResponseTimeout(upstream)
        }
        guard drained.isOver else {
            downstreams[downstream].isPaused = true
            return
        }
        dropPipe(ofDownstream: downstream)
        downstreams[downstream].isPaused = false
        if exchanges[exchange].body.isComplete { requestCompleted(exchange) } else { armBody(exchange) }
        markReady(downstream: downstream)
    }

    // MARK: Pipes

    private mutating func drainPipe(_ pipe: PipeHandle, into socket: Int32) -> PipeDrain {
        let (sent, hasFailed) = pipes.drain(pipe, into: socket)
        return PipeDrain(sent: sent, left: pipes.byteCount(pipe), hasFailed: hasFailed)
    }

    /// Whether a part of the response for a client is in a pipe.
    func hasResponseInPipe(_ downstream: Handle<DownstreamConnection>) -> Bool {
        let exchange = downstreams[downstream].exchange
        guard !exchange.isNone, !exchanges[exchange].upstream.isNone else { return false }
        return !upstreams[exchanges[exchange].upstream].pipe.isNone
    }

    /// Whether a part of the request for an upstream is in a pipe.
    func hasRequestInPipe(_ upstream: Handle<UpstreamConnection>) -> Bool {
        let exchange = upstreams[upstream].exchange
        return !exchange.isNone && !downstreams[exchanges[exchange].downstream].pipe.isNone
    }

    /// Releases the pipe of a request body, with its remaining bytes.
    mutating func dropPipe(ofDownstream downstream: Handle<DownstreamConnection>) {
        guard !downstreams[downstream].pipe.isNone else { return }
        pipes.release(downstreams[downstream].pipe)
        downstreams[downstream].pipe = .none
    }

    /// Releases the pipe of a response body, with its remaining bytes.
    mutating func dropPipe(ofUpstream upstream: Handle<UpstreamConnection>) {
        guard !upstreams[upstream].pipe.isNone else { return }
        pipes.release(upstreams[upstream].pipe)
        upstreams[upstream].pipe = .none
    }
}
