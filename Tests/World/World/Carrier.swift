import WorldMachine

/// A client's connection to a gateway, in whatever protocol.
protocol Carrier: AnyObject {
    var simulation: Simulation { get }
    var gateway: Gateway { get }
    /// Whether it takes another request.
    var isUsable: Bool { get }

    /// Sends a request.
    /// - Parameters:
    ///   - fields: lines of the head besides `Host`.
    ///   - parts: the body as HTTP/1 frames it.
    ///   - pauses: how long each part waits for the one before.
    ///   - cut: how many bytes are sent before the client leaves; `nil` for all.
    func send(_ exchange: Exchange, fields: [String], parts: [[UInt8]], pauses: [Int64], cut: Int?)
    /// Takes nothing from the connection for a time.
    func pause(for time: Int64)
    func close()
}

extension Carrier {
    /// The final head of a response has arrived.
    /// - Returns: whether it is that of the request.
    func accept(_ head: MessageHead, of exchange: Exchange) -> Bool {
        if let text = head.value("x-blurt"), let arrival = Int64(text) { checkBlurt(arrival, exchange) }
        if let number = head.value("x-world"), number != String(exchange.number) {
            simulation.ledger.violate(
                .oneResponse, "request \(exchange.number) got the response of request \(number)")
            return false
        }
        exchange.head = head
        exchange.headAt = simulation.machine.now
        exchange.progressAt = simulation.machine.now
        return true
    }

    func accept(_ bytes: [UInt8], of exchange: Exchange) {
        exchange.progressAt = simulation.machine.now
        if exchange.path.hasPrefix("/sse/"), exchange.head?.value("x-world") != nil {
            return simulation.ledger.passed(bytes, of: exchange.down, exchange, "to its client")
        }
        defer { exchange.responseBody += bytes }
        guard exchange.head?.value("x-world") != nil else { return }
        if !exchange.sends(bytes, at: exchange.responseBody.count) {
            simulation.ledger.violate(.body, "request \(exchange.number) got back other bytes than it sent")
        }
    }

    /// A response has ended as its protocol ends it.
    func complete(_ exchange: Exchange) {
        exchange.isComplete = true
        if exchange.path.hasPrefix("/sse/"), exchange.head?.value("x-world") != nil {
            if !exchange.down.isWhole {
                simulation.ledger.violate(.body, "the response to request \(exchange.number) was cut, and looks whole")
            }
        } else if exchange.head?.value("x-world") != nil, exchange.method != "HEAD",
            !exchange.isEarly, exchange.responseBody.count != exchange.body.count
        {
            simulation.ledger.violate(
                .body,
                "request \(exchange.number) sent \(exchange.body.count) bytes, and got back "
                    + "\(exchange.responseBody.count) as if they were all")
        }
        simulation.ledger.finished(exchange)
    }
}
