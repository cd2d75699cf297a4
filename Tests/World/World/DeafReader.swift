import WorldMachine

/// An operator whose connection takes nothing of the events while there are many.
final class DeafReader {
    private let simulation: Simulation
    private let gateway: Gateway
    private var peer: Peer?
    private var received = 0

    init(_ simulation: Simulation) {
        self.simulation = simulation
        gateway = simulation.gateways[0]
    }

    func start() {
        let machine = simulation.machine
        machine.at(8_000_000_000) { [self] in
            let address = Address(gateway.index, 9901)
            let peer = Peer.connect(machine, from: Address(244, 1000), to: address)
            self.peer = peer
            peer.received = { [self] in received += $0.count }
            peer.send(
                "GET /events HTTP/1.1\r\nHost: \(address.hostText):9901\r\nAuthorization: Bearer \(EventReader.token)\r\n\r\n"
            )
            machine.after(1_000_000_000) { [self] in
                peer.isDeaf = true
                received = 0
                for number in 0..<20 { ask(number, 20) }
            }
            machine.after(8_000_000_000) { peer.isDeaf = false }
            machine.after(9_000_000_000) { [self] in check() }
        }
    }

    /// Requests with long paths, one after the other.
    private func ask(_ number: Int, _ left: Int) {
        guard left > 0 else { return }
        let exchange = simulation.ledger.open(
            gateway: gateway, method: "GET", path: "/pub/\(String(repeating: "a", count: 3000))/", proof: .nothing,
            needsProof: false)
        let connection = ClientConnection(simulation, gateway, from: Address(245, 1000 + number * 100 + left))
        exchange.done = { [self] _ in
            connection.close()
            ask(number, left - 1)
        }
        connection.send(exchange, fields: [], parts: [], pauses: [], cut: nil)
    }

    private func check() {
        // What waits, what fills the connection, and what came in the last moment.
        let most = 256 * 1024 + simulation.plan.weather.capacity + 160 * 1024
        if received > most {
            simulation.ledger.violate(
                .bounds, "\(received) bytes of events were kept for a reader that took none, of \(most)")
        }
        peer?.close()
    }
}
