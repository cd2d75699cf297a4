import Foundation

/// A server that records every request byte by byte and responds as a script says, with a thread for each connection.
package final class ScriptedUpstream: Sendable {
    /// What is called for each request, on its connection's thread; what it throws closes the connection.
    package typealias Script = @Sendable (Exchange) throws -> Void

    private let listener: Listener
    private let script: Box<Script>
    private let record = Box<Record>(Record())

    private struct Record: Sendable {
        var requests: [HTTPMessage] = []
        var wholeRequests: [HTTPMessage] = []
        var connections: [RawSocket] = []
        var accepted = 0
        var ended = 0
        var isStopped = false
    }

    /// Starts to listen; without a script, every request gets 200 and `ok`.
    ///
    /// - Parameter readsBodies: whether a request's body is read before the script is called.
    package init(
        on endpoint: Endpoint = .loopback(0), readsBodies: Bool = true,
        _ script: @escaping Script = { try $0.respond(200, body: "ok") }
    ) throws {
        listener = try Listener(on: endpoint)
        self.script = Box(script)
        let (listener, box, record) = (self.listener, self.script, self.record)
        start {
            while let socket = listener.accept() {
                record.withLock {
                    $0.connections.append(socket)
                    $0.accepted += 1
                }
                start {
                    Self.serve(socket, readsBodies, box, record)
                    socket.close()
                    record.withLock { $0.ended += 1 }
                }
            }
        }
    }

    deinit { stop() }

    package var endpoint: Endpoint { listener.endpoint }
    package var port: UInt16 { listener.endpoint.port }
    /// As an upstream's endpoint is written in the configuration.
    package var url: String {
        switch endpoint {
        case .tcp: "http://\(endpoint)"
        case .unix: "\(endpoint)"
        }
    }

    /// The requests so far, in the order in which their heads came; bodies follow.
    package var requests: [HTTPMessage] { record.value.requests }
    /// Those whose bodies have been read, in the order in which they ended.
    package var wholeRequests: [HTTPMessage] { record.value.wholeRequests }
    /// How many connections were accepted so far.
    package var acceptedConnections: Int { record.value.accepted }
    /// How many connections are at their end.
    package var endedConnections: Int { record.value.ended }

    /// The only request so far.
    package func onlyRequest() throws -> HTTPMessage {
        let all = requests
        guard all.count == 1 else { throw TestFailure("\(all.count) requests instead of one: \(all)") }
        return all[0]
    }

    /// Responds differently from now on.
    package func respond(with script: @escaping Script) { self.script.withLock { $0 = script } }

    /// Stops to listen and cuts every connection.
    package func stop() {
        listener.close()
        let sockets = record.withLock { state in
            state.isStopped = true
            return state.connections
        }
        for socket in sockets { socket.abort() }
    }

    private static func serve(_ socket: RawSocket, _ readsBodies: Bool, _ script: Box<Script>, _ record: Box<Record>) {
        let reader = MessageReader(socket)
        while let head = try? reader.readHead(within: .seconds(3600)) {
            let index = record.withLock { state in
                state.requests.append(head)
                return state.requests.count - 1
            }
            let exchange = Exchange(head, index, socket, reader) { message in
                record.withLock {
                    $0.requests[index] = message
                    $0.wholeRequests.append(message)
                }
            }
            do {
                if readsBodies { try exchange.readBody() }
                try script.value(exchange)
            } catch {
                return
            }
            if exchange.closes { return }
        }
    }
}

private func start(_ block: @escaping @Sendable () -> Void) {
    let thread = Thread(block: block)
    thread.stackSize = 1 << 20
    thread.start()
}
