import WorldMachine

/// A response of a server that gateways call.
struct ServiceResponse {
    var status = "200 OK"
    var fields: [String] = []
    var body: [UInt8] = []

    init(_ status: String = "200 OK", json: String) {
        self.status = status
        fields = ["Content-Type: application/json"]
        body = Array(json.utf8)
    }
}

/// How a server that gateways call fails.
enum ServiceFault: Equatable {
    case dies, hangs, fails, babbles, crawls
    /// The request is carried out, and its response is lost.
    case forgets
}

/// A server that gateways call over HTTP/1.1, such as an issuer, and what goes wrong with it.
class Service {
    unowned let simulation: Simulation
    let address: Address
    var random: SeededRandom
    private var peers: [Peer] = []
    private var fault: (kind: ServiceFault, until: Int64)?
    /// When it last failed.
    private(set) var lastFailure: Int64?
    /// Until when it last said, or may have said, what is not so.
    private(set) var lastLie: Int64 = .min / 2

    init(_ simulation: Simulation, at address: Address, part: StaticString) {
        self.simulation = simulation
        self.address = address
        random = SeededRandom(seed: simulation.plan.seed, part: part)
        open()
    }

    /// Carries out a request.
    func respond(_ head: MessageHead, _ body: [UInt8]) -> ServiceResponse {
        ServiceResponse("404 Not Found", json: "{}")
    }

    /// A request gets a 200 with nonsense: what that means.
    func babbles(_ head: MessageHead, _ body: [UInt8]) {}

    /// Whether everything was well since a time.
    func wasWell(since time: Int64) -> Bool { (lastFailure ?? -1) < time }

    func strike(_ kind: ServiceFault, for time: Int64) {
        let machine = simulation.machine
        fault = (kind, machine.now + time)
        lastFailure = machine.now + time
        if kind == .babbles || kind == .crawls { lastLie = machine.now + time }
        guard kind == .dies else { return }
        machine.network.services[address] = nil
        for peer in peers { peer.abort() }
        peers.removeAll()
        machine.after(time) { [unowned self] in open() }
    }

    private func open() {
        simulation.machine.network.services[address] = { [unowned self] in accept($0) }
    }

    private var current: ServiceFault? {
        guard let fault, simulation.machine.now < fault.until else { return nil }
        return fault.kind
    }

    private func accept(_ stream: Stream) {
        let peer = Peer(stream)
        peers.append(peer)
        var reader = MessageReader(isResponse: false)
        var head = MessageHead()
        var body: [UInt8] = []
        peer.received = { [unowned self, unowned peer] bytes in
            for piece in reader.read(bytes) {
                switch piece {
                case .head(let new): (head, body) = (new, [])
                case .body(let part): body += part
                case .end: serve(head, body, peer)
                case .invalid(let reason):
                    simulation.ledger.violate(.oneResponse, "a server got a malformed request: \(reason)")
                }
            }
        }
        peer.ended = { [unowned self, unowned peer] _ in peers.removeAll { $0 === peer } }
        stream.watcher?(stream)
    }

    private func serve(_ head: MessageHead, _ body: [UInt8], _ peer: Peer) {
        let machine = simulation.machine
        if random.chance(simulation.plan.rudeness) { return peer.abort() }
        switch current {
        case nil: send(respond(head, body), to: peer, after: random.within(0...30))
        case .dies: peer.abort()
        case .hangs:
            let until = fault?.until ?? 0
            machine.at(until) { [self] in if !peer.hasEnded { send(respond(head, body), to: peer, after: 0) } }
        case .fails:
            let status = random.pick(["500 Internal Server Error", "502 Bad Gateway", "503 Service Unavailable"])
            send(ServiceResponse(status, json: "<html>sorry</html>"), to: peer, after: 1)
        case .babbles:
            babbles(head, body)
            let text = random.pick(["", "{", "[]", "{\"keys\":[]}", "{\"keys\":7}", "null", "\u{0}\u{1}"])
            send(ServiceResponse(json: text), to: peer, after: 1)
        case .crawls: send(respond(head, body), to: peer, after: random.within(500...5000), crawls: true)
        case .forgets:
            _ = respond(head, body)
            peer.abort()
        }
    }

    private func send(_ response: ServiceResponse, to peer: Peer, after milliseconds: Int, crawls: Bool = false) {
        let isLast = random.chance(100)
        var lines = response.fields + ["Content-Length: \(response.body.count)"]
        if isLast { lines.append("Connection: close") }
        let text = "HTTP/1.1 \(response.status)\r\n\(lines.joined(separator: "\r\n"))\r\n\r\n"
        let bytes = Array(text.utf8) + response.body
        let machine = simulation.machine
        let cut = random.chance(simulation.plan.rudeness) ? random.below(bytes.count) : bytes.count
        var time = machine.now + Int64(milliseconds) * 1_000_000
        var first = 0
        while first < bytes.count {
            let size = crawls || random.chance(100) ? 1 + random.below(200) : bytes.count
            let part = Array(bytes[first..<min(first + size, bytes.count)])
            first += size
            let (isCut, isEnd) = (first > cut, first >= bytes.count)
            machine.at(time) {
                guard !peer.hasEnded else { return }
                if isCut { return peer.abort() }
                peer.send(part)
                if isEnd, isLast { peer.finish() }
            }
            time += Int64(random.within(1...(crawls ? 400 : 30))) * 1_000_000
        }
    }
}
