import MartletJSON
import WorldMachine

/// An operator who watches the requests of a gateway as they finish, comes and goes, and sometimes does not read.
final class EventReader {
    static let token = "0123456789abcdef0123456789abcdef"

    private unowned let simulation: Simulation
    private var random: SeededRandom
    private let index: Int
    private var port = 1000
    private var left: Int
    private var peer: Peer?
    private var reader = MessageReader(isResponse: true)
    private var text: [UInt8] = []
    /// Requests of which it has read.
    private var seen: Set<Int> = []

    init(_ simulation: Simulation, _ index: Int) {
        self.simulation = simulation
        self.index = index
        random = SeededRandom(seed: simulation.plan.seed &+ UInt64(index) &* 104_729, part: "reader")
        left = random.within(2...8)
    }

    func start() { pause { [self] in come() } }

    /// Comes no more.
    func stop() {
        left = 0
        if let peer, !peer.hasEnded { peer.close() }
    }

    private func pause(_ next: @escaping () -> Void) {
        simulation.machine.after(Int64(random.within(50...9000)) * 1_000_000, next)
    }

    private func come() {
        guard left > 0 else { return }
        left -= 1
        port += 1
        seen = []
        text = []
        reader = MessageReader(isResponse: true)
        reader.headRequests = [false]
        let gateway = simulation.gateways[random.below(simulation.gateways.count)]
        let address = Address(gateway.index, 9901)
        let peer = Peer.connect(simulation.machine, from: Address(240 + index, port), to: address)
        self.peer = peer
        peer.received = { [unowned self] in received($0) }
        peer.ended = { [unowned self] _ in pause { [self] in come() } }
        peer.send(
            "GET /events HTTP/1.1\r\nHost: \(address.hostText):9901\r\nAuthorization: Bearer \(Self.token)\r\n\r\n")
        if random.chance(300) {
            peer.isDeaf = true
            simulation.machine.after(Int64(random.within(100...8000)) * 1_000_000) { [weak peer] in peer?.isDeaf = false
            }
        }
        let isRude = random.chance(500)
        pause { [self] in
            guard !peer.hasEnded else { return }
            if isRude { peer.abort() } else { peer.close() }
            pause { [self] in come() }
        }
    }

    private func received(_ bytes: [UInt8]) {
        for piece in reader.read(bytes) {
            switch piece {
            case .head(let head):
                if head.status != 200, head.status != 503 {
                    simulation.ledger.violate(.outage, "a reader of events got \(head.start)")
                }
            case .body(let part):
                text += part
                while let end = text.firstIndex(of: 10) {
                    line(Array(text[..<end]))
                    text.removeFirst(end + 1)
                }
            case .end: break
            case .invalid(let reason):
                simulation.ledger.violate(.oneResponse, "a reader of events got a malformed response: \(reason)")
            }
        }
    }

    private func line(_ bytes: [UInt8]) {
        guard bytes.starts(with: Array("data: {".utf8)) else { return }
        guard let event = JSONValue.parsed(Array(bytes.dropFirst(6)))?.object else {
            return simulation.ledger.violate(.oneLine, "a reader of events got a line that is no JSON")
        }
        guard let path = event["path"]?.string, let exchange = simulation.ledger.exchange(ofPath: path) else { return }
        if !seen.insert(exchange.number).inserted {
            simulation.ledger.violate(.oneLine, "a reader got two events of request \(exchange.number)")
        }
        let status = event["status"]?.int64 ?? 0
        // What gRPC says of a status is not the status of HTTP.
        let isCall = exchange.path.hasPrefix("/envoy.") || exchange.head?.value("grpc-status") != nil
        if exchange.isComplete, status != 0, status != exchange.status, !isCall {
            simulation.ledger.violate(
                .oneLine, "an event of request \(exchange.number) has \(status), and its client got \(exchange.status)")
        }
    }
}
