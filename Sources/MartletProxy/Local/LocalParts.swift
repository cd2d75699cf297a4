internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletResponder

/// Responses of this process whose body comes in parts: their end is that of the connection.
enum LocalParts {
    /// How much may wait for a client that reads slowly; parts beyond it are dropped.
    private static let maximumWaiting = 256 * 1024
    /// How long a response may be without a part that could be sent, in nanoseconds.
    private static let idleTimeout: Int64 = 60_000_000_000

    /// Sends the head, and every part as it comes.
    static func begin(
        _ parts: AsyncStream<[UInt8]>, of response: LocalResponse, _ exchange: Handle<Exchange>,
        _ loop: inout LoopState
    ) {
        loop.exchanges[exchange].response.start(status: response.status, closes: true)
        loop.context.scratch.pending[exchange].removeAll()
        unsafe loop.exchanges[exchange].headWriter(&loop.downstreams).writeLocal(
            response, date: loop.context.clock.dateText, requestID: loop.exchanges[exchange].record.texts.requestID,
            hasLength: false, into: &loop.context.scratch.pending[exchange])
        loop.exchanges.completeHead(of: exchange, .own, &loop.context)
        if loop.exchanges[exchange].request.method == .head {
            loop.sendPending(exchange, isLast: true)
            if loop.exchanges[exchange].isAlive { loop.complete(exchange) }
            return
        }
        loop.context.scratch.pending[exchange].append(response.body)
        loop.downstreams.arm(loop.exchanges[exchange].downstream, at: loop.now &+ idleTimeout, &loop.context)
        loop.exchanges[exchange].local.task = Task { [mailbox = loop.mailbox] in
            for await part in parts { mailbox.post(.localPart(exchange: exchange, part)) }
            mailbox.post(.localPart(exchange: exchange, []))
        }
        loop.sendPending(exchange)
    }

    /// Sends a part; an empty one ends the response.
    static func received(_ part: [UInt8], of exchange: Handle<Exchange>, _ loop: inout LoopState) {
        guard loop.exchanges[exchange].responder == .local, loop.exchanges[exchange].response.hasStarted else { return }
        let downstream = loop.exchanges[exchange].downstream
        guard !part.isEmpty, !loop.isDraining else {
            loop.exchanges[exchange].local.task?.cancel()
            loop.exchanges[exchange].local.task = nil
            return loop.complete(exchange)
        }
        // A client that reads nothing is cut by its timeout.
        guard loop.downstreams[downstream].transport.output.count < maximumWaiting else { return }
        loop.downstreams.arm(downstream, at: loop.now &+ idleTimeout, &loop.context)
        loop.exchanges[exchange].record.bytesOut &+= part.count
        loop.context.scratch.pending[exchange].removeAll()
        loop.context.scratch.pending[exchange].append(part)
        loop.sendPending(exchange)
    }
}
