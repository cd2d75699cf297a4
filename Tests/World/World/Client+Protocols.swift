import WorldMachine

extension Plan {
    /// Whether a client speaks HTTP/2.
    func speaksHTTP2(_ client: Int) -> Bool {
        var random = SeededRandom(seed: seed &+ UInt64(client) &* 104_729, part: "protocol")
        return random.chance(400)
    }
}

extension Client {
    /// A new connection in the protocol that the client speaks.
    func carrier(to gateway: Gateway, from address: Address) -> any Carrier {
        simulation.plan.speaksHTTP2(index)
            ? HTTP2Connection(simulation, gateway, from: address, SeededRandom(seed: random.next()))
            : ClientConnection(simulation, gateway, from: address, spelled: SeededRandom(seed: random.next()))
    }

    /// Sends several requests on one connection without waiting for responses.
    func several(_ next: @escaping (Exchange?) -> Void) {
        pinned = connection()
        let count = random.within(2...8)
        var left = count
        let one: (Exchange?) -> Void = { exchange in
            left -= 1
            if left == 0 { next(exchange) }
        }
        for _ in 0..<count {
            switch random.below(6) {
            case 0: wrong(one)
            case 1, 2:
                if let session, session.endAsked == nil { use(session, one) } else { visit("/opt/", one) }
            default: visit(random.pick(["/pub/", "/opt/"]), one)
            }
        }
        pinned = nil
    }
}
