import MartletJSON
import WorldMachine

/// An issuer signs with a new key and goes away: gateways cannot know whether the tokens are good, so they reject none.
/// One of them gets another configuration meanwhile, in which one of the tokens proves nothing.
final class KeyTrial {
    static let audience = "com.example.twin"
    private static let subject = "00100trial.0123456789abcdef.0001"

    private unowned let simulation: Simulation
    private var random: SeededRandom
    private var port = 1000

    init(_ simulation: Simulation) {
        self.simulation = simulation
        random = SeededRandom(seed: simulation.plan.seed, part: "key trial")
    }

    private var issuer: Issuer { simulation.issuer }
    private var machine: Machine { simulation.machine }
    private var identity: String { "apple:\(Self.subject)" }

    func start() {
        machine.at(Int64(random.within(6000...16_000)) * 1_000_000) { [self] in
            let gateway = simulation.gateways[random.below(simulation.gateways.count)]
            // It accepts the other audience only in every second configuration.
            if gateway.variant % 2 == 1 { simulation.reload(gateway) }
            machine.after(2_000_000_000) { [self] in strike(gateway) }
        }
    }

    private func sign(_ audience: String) -> String {
        let issued = machine.wallTime / 1_000_000_000 - 1
        let claims: JSONObject = [
            "iss": .string(Issuer.name), "aud": .string(audience), "exp": .integer(issued + 86_400),
            "iat": .integer(issued), "sub": .string(Self.subject), "auth_time": .integer(issued),
        ]
        return issuer.sign(["kid": .string(issuer.key.id), "alg": "RS256"], claims, by: issuer.key.key)
    }

    private func strike(_ gateway: Gateway) {
        issuer.rotate(keepingFor: 200_000_000_000)
        guard issuer.key.published == machine.now else { return }
        let began = machine.now
        issuer.strike(random.pick([.hangs, .hangs, .dies, .fails]), for: Int64(random.within(2800...3800)) * 1_000_000)
        // Whatever was asked before has no say by then.
        machine.after(1_600_000_000) { [self] in ask(gateway, since: began) }
    }

    private func ask(_ gateway: Gateway, since began: Int64) {
        let good = sign(Issuer.audience)
        for other in simulation.gateways {
            present(good, to: other) { [self] exchange in
                guard exchange.status == 401, issuer.lastLie < began - 8_000_000_000,
                    simulation.plan.skew < 50_000_000_000
                else { return }
                simulation.ledger.violate(
                    .outage, "a token of a key that cannot be known got 401 in request \(exchange.number)")
            }
        }
        guard gateway.variant % 2 == 0, gateway.usedVariant == gateway.variant else { return }
        change(gateway, sign(Self.audience))
    }

    /// Takes the audience of a token away while it is looked at.
    private func change(_ gateway: Gateway, _ token: String) {
        present(token, to: gateway) { _ in }
        machine.after(Int64(random.within(100...900)) * 1_000_000) { [self] in
            guard gateway.variant % 2 == 0 else { return }
            simulation.reload(gateway)
            let (variant, incarnation) = (gateway.variant, gateway.incarnation)
            machine.after(4_000_000_000) { [self] in
                guard gateway.usedVariant == variant, gateway.variant == variant, gateway.incarnation == incarnation,
                    gateway.isServing
                else { return }
                for _ in 0..<4 {
                    present(token, to: gateway, isGood: false) { _ in }
                }
            }
        }
    }

    private func present(
        _ token: String, to gateway: Gateway, isGood: Bool = true, _ done: @escaping (Exchange) -> Void
    ) {
        port += 1
        let exchange = simulation.ledger.open(
            gateway: gateway, method: "GET", path: "/id/",
            proof: isGood ? .direct(subject: identity) : .wrong, needsProof: true)
        let connection = ClientConnection(simulation, gateway, from: Address(246, port))
        exchange.sent = ["a token of the key trial"]
        let variant = gateway.variant
        exchange.isStillWrong = { gateway.variant == variant }
        exchange.done = { exchange in
            connection.close()
            done(exchange)
        }
        connection.send(exchange, fields: ["Authorization: Bearer \(token)"], parts: [], pauses: [], cut: nil)
    }

    // MARK: The end

    /// With all faults gone, a token of a new key is accepted.
    func probe() {
        guard simulation.plan.skew < 50_000_000_000 else { return }
        issuer.rotate(keepingFor: 600_000_000_000)
        let token = sign(Issuer.audience)
        for gateway in simulation.gateways { probe(gateway, token) }
    }

    private func probe(_ gateway: Gateway, _ token: String) {
        simulation.probes += 1
        present(token, to: gateway) { [self] exchange in
            simulation.probes -= 1
            if exchange.head?.value("x-world") != nil { return }
            simulation.probes += 1
            machine.after(1_000_000_000) { [self] in
                simulation.probes -= 1
                probe(gateway, token)
            }
        }
    }
}
