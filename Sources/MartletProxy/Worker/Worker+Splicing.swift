private import CLinux
internal import MartletCore
internal import MartletHTTP
internal import MartletIO

/// Long bodies in clear text: the kernel moves them from socket to socket, through a pipe.
///
/// Bytes in a pipe count as not received yet: nothing is counted, and no body is complete, before the taker's kernel has
/// them. So a transfer is at every moment what it would be if they still stood in the queue of the socket that they came
/// from. The side that filled the pipe is paused until it is empty again.
extension Worker {
    /// Bodies with less left are copied: two calls and the pipe cost more than that.
    private static let worthSplicing = 64 * 1024
    /// A transfer that moves less at a time is none of bulk (any more): a single read and write cost less.
    private static let bulk = 16 * 1024

    // MARK: Answers

    /// Moves a part of an answer's body.
    /// - Returns: whether that is all there is to do now; else the link is to be read.
    mutating func spliceAnswer(_ link: Int32) -> Bool {
        guard mayBeSpliced(answerOf: link), let pipe = pipes.take() else { return false }
        let count = pipes.fill(pipe, from: links[link].fd, atMost: links[link].remaining)
        guard count > 0 else {
            // An end, or an error, is left to be read.
            let isDry = count < 0 && martlet_errno() == EAGAIN
            pipes.give(pipe)
            return isDry
        }
        links[link].pipe = pipe
        links[link].isBulk = count >= Worker.bulk
        arm(link: link, at: now &+ exchanges[links[link].exchange].idlePatience)
        drainAnswer(link)
        return true
    }

    private func mayBeSpliced(answerOf link: Int32) -> Bool {
        guard links[link].kind == .http1, !links[link].isSecure, links[link].phase == .body, links[link].pipe < 0,
            case .length = links[link].framing, links[link].remaining >= Worker.worthSplicing,
            links[link].input.isEmpty
        else { return false }
        let exchange = links[link].exchange
        guard exchange >= 0, !isTunnel(exchange) else { return false }
        let client = exchanges[exchange].client
        return clients[client].kind == .http1 && !clients[client].rules.isSecure && clients[client].output.isEmpty
    }

    /// The client can take more of an answer that waits in a pipe.
    mutating func goOnSplicing(toClient client: Int32) {
        let exchange = clients[client].exchange
        guard exchange >= 0, exchanges[exchange].link >= 0, links[exchanges[exchange].link].pipe >= 0 else { return }
        drainAnswer(exchanges[exchange].link)
    }

    private mutating func drainAnswer(_ link: Int32) {
        let (exchange, pipe) = (links[link].exchange, links[link].pipe)
        let client = exchanges[exchange].client
        let (count, hasFailed) = pipes.drain(pipe, into: clients[client].fd)
        exchanges[exchange].bytesOut &+= count
        links[link].remaining &-= count
        guard !hasFailed else { return abandon(client) }
        let wasPaused = links[link].isPaused
        if count > 0 || !wasPaused { clients[client].takenAt = now }
        guard pipes.held(pipe) == 0 else {
            links[link].isPaused = true
            if exchanges[exchange].isRequestComplete, count > 0 || !wasPaused { armWrite(client) }
            return
        }
        dropPipe(ofLink: link)
        if wasPaused {
            links[link].isPaused = false
            arm(link: link, at: now &+ exchanges[exchange].idlePatience)
            // The rest is up to the upstream, whose link has a deadline of its own.
            if exchanges[exchange].isRequestComplete, !clients[client].awaitsProbe { arm(client: client, at: .max) }
        }
        guard links[link].remaining == 0 else { return markReady(link: link) }
        let generation = links[link].generation
        // What other requests left there is nobody's business here.
        staging.removeAll()
        endAnswer(link)
        guard links.holds(link, generation), links[link].phase == .idle else { return }
        checkIdle(link, received: ReceiveBuffer.size)
    }

    // MARK: Requests

    /// Moves a part of a request's body.
    /// - Returns: whether that is all there is to do now; else the client is to be read.
    mutating func spliceBody(_ client: Int32) -> Bool {
        guard mayBeSpliced(bodyOf: client), let pipe = pipes.take() else { return false }
        let exchange = clients[client].exchange
        let count = pipes.fill(pipe, from: clients[client].fd, atMost: exchanges[exchange].remaining)
        guard count > 0 else {
            let isDry = count < 0 && martlet_errno() == EAGAIN
            pipes.give(pipe)
            if isDry { clients[client].mayHaveMore = false }
            return isDry
        }
        clients[client].pipe = pipe
        clients[client].isBulk = count >= Worker.bulk
        armBody(exchange)
        drainBody(client)
        return true
    }

    private func mayBeSpliced(bodyOf client: Int32) -> Bool {
        guard clients[client].kind == .http1, !clients[client].rules.isSecure, clients[client].phase == .exchange,
            clients[client].pipe < 0, clients[client].input.isEmpty
        else { return false }
        let exchange = clients[client].exchange
        guard exchanges[exchange].responder == .upstream, case .length = exchanges[exchange].framing,
            exchanges[exchange].remaining >= Worker.worthSplicing, !isTunnel(exchange),
            exchanges[exchange].body.isEmpty, exchanges[exchange].headSent == exchanges[exchange].head.count
        else { return false }
        let link = exchanges[exchange].link
        return link >= 0 && links[link].kind == .http1 && !links[link].isSecure && links[link].isUp
            && !links[link].hasEnded && links[link].output.isEmpty && links[link].wire.isEmpty
    }

    /// The upstream can take more of a body that waits in a pipe.
    mutating func goOnSplicing(toLink link: Int32) {
        let exchange = links[link].exchange
        guard exchange >= 0, clients[exchanges[exchange].client].pipe >= 0 else { return }
        drainBody(exchanges[exchange].client)
    }

    private mutating func drainBody(_ client: Int32) {
        let (exchange, pipe) = (clients[client].exchange, clients[client].pipe)
        let link = exchanges[exchange].link
        let (sent, hasFailed) = pipes.drain(pipe, into: links[link].fd)
        // An upstream that takes no more has its say; what it did not take is gone like the rest that is to come.
        let count = hasFailed ? sent &+ pipes.held(pipe) : sent
        exchanges[exchange].remaining &-= count
        exchanges[exchange].bodyBytes &+= count
        exchanges[exchange].bytesIn &+= count
        exchanges[exchange].windowBytes &+= count
        if exchanges[exchange].remaining == 0 { exchanges[exchange].isRequestComplete = true }
        if hasFailed {
            sendFailed(link)
        } else if sent > 0, !exchanges[exchange].isRequestComplete {
            armAnswer(link)
        }
        guard hasFailed || pipes.held(pipe) == 0 else {
            clients[client].isPaused = true
            return
        }
        dropPipe(ofClient: client)
        clients[client].isPaused = false
        if exchanges[exchange].isRequestComplete { requestComplete(exchange) } else { armBody(exchange) }
        markReady(client: client)
    }

    // MARK: Pipes

    /// Whether a part of its answer waits for a client in a pipe.
    func hasAnswerInPipe(_ client: Int32) -> Bool {
        let exchange = clients[client].exchange
        guard exchange >= 0, exchanges[exchange].link >= 0 else { return false }
        return links[exchanges[exchange].link].pipe >= 0
    }

    /// Whether a part of its request waits for an upstream in a pipe.
    func hasBodyInPipe(_ link: Int32) -> Bool {
        links[link].exchange >= 0 && clients[exchanges[links[link].exchange].client].pipe >= 0
    }

    /// Gives back the pipe of a client's body, with what is left in it.
    mutating func dropPipe(ofClient client: Int32) {
        guard clients[client].pipe >= 0 else { return }
        pipes.give(clients[client].pipe)
        clients[client].pipe = -1
    }

    /// Gives back the pipe of a link's answer, with what is left in it.
    mutating func dropPipe(ofLink link: Int32) {
        guard links[link].pipe >= 0 else { return }
        pipes.give(links[link].pipe)
        links[link].pipe = -1
    }
}
