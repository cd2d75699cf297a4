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
    /// Shorter remainders are copied: two system calls and the pipe cost more.
    private static let spliceThreshold = 64 * 1024
    /// Smaller transfers are not bulk (any more): a single read and write cost less.
    private static let bulkThreshold = 16 * 1024

    // MARK: Responses

    /// Moves a part of a response's body.
    /// - Returns: whether that is all there is to do now; otherwise the upstream connection has to be read.
    mutating func spliceResponse(_ upstream: Int32) -> Bool {
        guard canSpliceResponse(upstream), let pipe = pipes.acquire() else { return false }
        let count = pipes.fill(pipe, from: upstreams[upstream].fd, atMost: upstreams[upstream].remaining)
        guard count > 0 else {
            // An end of stream or an error is left to the read.
            let isDry = count < 0 && martlet_errno() == EAGAIN
            pipes.release(pipe)
            return isDry
        }
        upstreams[upstream].pipe = pipe
        upstreams[upstream].isBulk = count >= EventLoop.bulkThreshold
        arm(upstream: upstream, at: now &+ exchanges[upstreams[upstream].exchange].idleTimeout)
        drainResponsePipe(upstream)
        return true
    }

    private func canSpliceResponse(_ upstream: Int32) -> Bool {
        guard upstreams[upstream].kind == .http1, !upstreams[upstream].isSecure, upstreams[upstream].phase == .body,
            upstreams[upstream].pipe < 0,
            case .length = upstreams[upstream].framing, upstreams[upstream].remaining >= EventLoop.spliceThreshold,
            upstreams[upstream].input.isEmpty
        else { return false }
        let exchange = upstreams[upstream].exchange
        guard exchange >= 0, !isTunnel(exchange) else { return false }
        let downstream = exchanges[exchange].downstream
        return downstreams[downstream].kind == .http1 && !downstreams[downstream].rules.isSecure
            && downstreams[downstream].output.isEmpty
    }

    /// The client can accept more of a response in a pipe.
    mutating func resumeSplice(toDownstream downstream: Int32) {
        let exchange = downstreams[downstream].exchange
        guard exchange >= 0, exchanges[exchange].upstream >= 0, upstreams[exchanges[exchange].upstream].pipe >= 0 else {
            return
        }
        drainResponsePipe(exchanges[exchange].upstream)
    }

    private mutating func drainResponsePipe(_ upstream: Int32) {
        let (exchange, pipe) = (upstreams[upstream].exchange, upstreams[upstream].pipe)
        let downstream = exchanges[exchange].downstream
        let (count, hasFailed) = pipes.drain(pipe, into: downstreams[downstream].fd)
        exchanges[exchange].bytesOut &+= count
        upstreams[upstream].remaining &-= count
        guard !hasFailed else { return abandon(downstream) }
        let wasPaused = upstreams[upstream].isPaused
        if count > 0 || !wasPaused { downstreams[downstream].lastWriteAt = now }
        guard pipes.byteCount(pipe) == 0 else {
            upstreams[upstream].isPaused = true
            if exchanges[exchange].isRequestComplete, count > 0 || !wasPaused { armWrite(downstream) }
            return
        }
        dropPipe(ofUpstream: upstream)
        if wasPaused {
            upstreams[upstream].isPaused = false
            arm(upstream: upstream, at: now &+ exchanges[exchange].idleTimeout)
            // The rest is up to the upstream connection, which has its own deadline.
            if exchanges[exchange].isRequestComplete, !downstreams[downstream].isProbePending {
                arm(downstream: downstream, at: .max)
            }
        }
        guard upstreams[upstream].remaining == 0 else { return markReady(upstream: upstream) }
        let generation = upstreams[upstream].generation
        // Discard what other requests left.
        staging.removeAll()
        finishResponse(upstream)
        guard upstreams.contains(upstream, generation), upstreams[upstream].phase == .idle else { return }
        checkIdle(upstream, received: ReceiveBuffer.size)
    }

    // MARK: Requests

    /// Moves a part of a request's body.
    /// - Returns: whether that is all there is to do now; otherwise the downstream connection has to be read.
    mutating func spliceBody(_ downstream: Int32) -> Bool {
        guard canSpliceRequest(downstream), let pipe = pipes.acquire() else { return false }
        let exchange = downstreams[downstream].exchange
        let count = pipes.fill(pipe, from: downstreams[downstream].fd, atMost: exchanges[exchange].remaining)
        guard count > 0 else {
            let isDry = count < 0 && martlet_errno() == EAGAIN
            pipes.release(pipe)
            if isDry { downstreams[downstream].mayHaveUnread = false }
            return isDry
        }
        downstreams[downstream].pipe = pipe
        downstreams[downstream].isBulk = count >= EventLoop.bulkThreshold
        armBody(exchange)
        drainRequestPipe(downstream)
        return true
    }

    private func canSpliceRequest(_ downstream: Int32) -> Bool {
        guard downstreams[downstream].kind == .http1, !downstreams[downstream].rules.isSecure,
            downstreams[downstream].phase == .exchange,
            downstreams[downstream].pipe < 0, downstreams[downstream].input.isEmpty
        else { return false }
        let exchange = downstreams[downstream].exchange
        guard exchanges[exchange].responder == .upstream, case .length = exchanges[exchange].framing,
            exchanges[exchange].remaining >= EventLoop.spliceThreshold, !isTunnel(exchange),
            exchanges[exchange].body.isEmpty, exchanges[exchange].headSent == exchanges[exchange].head.count
        else { return false }
        let upstream = exchanges[exchange].upstream
        return upstream >= 0 && upstreams[upstream].kind == .http1 && !upstreams[upstream].isSecure
            && upstreams[upstream].isUp
            && !upstreams[upstream].isReadClosed && upstreams[upstream].output.isEmpty
            && upstreams[upstream].transportOutput.isEmpty
    }

    /// The upstream can accept more of a body in a pipe.
    mutating func resumeSplice(toUpstream upstream: Int32) {
        let exchange = upstreams[upstream].exchange
        guard exchange >= 0, downstreams[exchanges[exchange].downstream].pipe >= 0 else { return }
        drainRequestPipe(exchanges[exchange].downstream)
    }

    private mutating func drainRequestPipe(_ downstream: Int32) {
        let (exchange, pipe) = (downstreams[downstream].exchange, downstreams[downstream].pipe)
        let upstream = exchanges[exchange].upstream
        let (sent, hasFailed) = pipes.drain(pipe, into: upstreams[upstream].fd)
        // If the upstream closed: read its early response; the unsent body is discarded.
        let count = hasFailed ? sent &+ pipes.byteCount(pipe) : sent
        exchanges[exchange].remaining &-= count
        exchanges[exchange].bodyBytes &+= count
        exchanges[exchange].bytesIn &+= count
        exchanges[exchange].windowBytes &+= count
        if exchanges[exchange].remaining == 0 { exchanges[exchange].isRequestComplete = true }
        if hasFailed {
            sendFailed(upstream)
        } else if sent > 0, !exchanges[exchange].isRequestComplete {
            armResponseTimeout(upstream)
        }
        guard hasFailed || pipes.byteCount(pipe) == 0 else {
            downstreams[downstream].isPaused = true
            return
        }
        dropPipe(ofDownstream: downstream)
        downstreams[downstream].isPaused = false
        if exchanges[exchange].isRequestComplete { requestCompleted(exchange) } else { armBody(exchange) }
        markReady(downstream: downstream)
    }

    // MARK: Pipes

    /// Whether a part of the response for a client is in a pipe.
    func hasResponseInPipe(_ downstream: Int32) -> Bool {
        let exchange = downstreams[downstream].exchange
        guard exchange >= 0, exchanges[exchange].upstream >= 0 else { return false }
        return upstreams[exchanges[exchange].upstream].pipe >= 0
    }

    /// Whether a part of the request for an upstream is in a pipe.
    func hasRequestInPipe(_ upstream: Int32) -> Bool {
        upstreams[upstream].exchange >= 0 && downstreams[exchanges[upstreams[upstream].exchange].downstream].pipe >= 0
    }

    /// Releases the pipe of a request body, with its remaining bytes.
    mutating func dropPipe(ofDownstream downstream: Int32) {
        guard downstreams[downstream].pipe >= 0 else { return }
        pipes.release(downstreams[downstream].pipe)
        downstreams[downstream].pipe = -1
    }

    /// Releases the pipe of a response body, with its remaining bytes.
    mutating func dropPipe(ofUpstream upstream: Int32) {
        guard upstreams[upstream].pipe >= 0 else { return }
        pipes.release(upstreams[upstream].pipe)
        upstreams[upstream].pipe = -1
    }
}
