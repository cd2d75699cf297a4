import MartletCore
import MartletCrypto
import MartletJSON
import WorldMachine

/// The servers that only some configurations name, and what they have seen.
final class Offers {
    private unowned let simulation: Simulation
    private let keys: SigningKeys
    private var services: [Service] = []
    /// Who gets events and mails.
    private(set) var hook: Hook?
    private(set) var company: Company?
    private var others: [AnyObject] = []
    /// The upstream that someone stays with.
    private var stays: [String: String] = [:]
    /// Requests at the upstream with a breaker.
    private var entered: [Exchange] = []
    private var assertions = 0

    init(_ simulation: Simulation, _ keys: SigningKeys) {
        self.simulation = simulation
        self.keys = keys
        let plan = simulation.plan
        if plan.has(.tracing) { services.append(Collector(simulation)) }
        if plan.has(.programs) { services.append(Robots(simulation)) }
        if plan.callers.hasAccounts, plan.has(.members) || plan.has(.records) {
            let hook = Hook(simulation)
            self.hook = hook
            services.append(hook)
        }
        if plan.has(.company) {
            let company = Company(simulation, keys.developer)
            self.company = company
            services.append(company)
        }
        if plan.has(.copies) { services += [Shadow(simulation, 120), Shadow(simulation, 121)] }
        if plan.has(.traffic) {
            services += (0..<plan.upstreams).map { Prober(simulation, 100 + $0) }
            others = [Informed(simulation), Called(simulation)]
        }
    }

    /// The key of clients that have one.
    var clientKey: PrivateKey { keys.developer }

    func strike(_ fault: ServiceFault, for time: Int64) {
        for service in services { service.strike(fault, for: time) }
    }

    // MARK: What upstreams see

    /// - Returns: what is wrong.
    func stays(_ key: String, with host: String) -> String? {
        if let known = stays[key], known != host { return "for \(host), while its caller stays with \(known)" }
        stays[key] = host
        return nil
    }

    /// How many requests of its gateway are under way at the upstream with a breaker, this one included.
    func enters(_ exchange: Exchange) -> Int {
        if !entered.contains(where: { $0 === exchange }) { entered.append(exchange) }
        // One that its client or its upstream gave up, or that is sent again, may have left.
        entered.removeAll { $0.state != .sent || $0.respondedAt > 0 || $0.sightings > 1 }
        return entered.count { $0.incarnation == exchange.incarnation }
    }

    /// An upstream has got the head of a request.
    func saw(_ head: MessageHead, _ exchange: Exchange) {
        if simulation.plan.has(.tracing) { checkTrace(head, exchange) }
        if simulation.plan.has(.assertion) { checkAssertion(head, exchange) }
    }

    private func checkTrace(_ head: MessageHead, _ exchange: Exchange) {
        let parts = (head.value("traceparent") ?? "").split(separator: "-").map(\.count)
        if parts != [2, 32, 16, 2] {
            simulation.ledger.violate(.routing, "an upstream got request \(exchange.number) without one trace")
        }
    }

    /// An assertion says who it is, and nothing else.
    private func checkAssertion(_ head: MessageHead, _ exchange: Exchange) {
        let values = head.fields.filter { $0.name.lowercased() == "x-auth-assertion" }.map(\.value)
        func wrong(_ what: String) {
            simulation.ledger.violate(.identity, "the assertion of request \(exchange.number) \(what)")
        }
        guard let text = values.first else { return }
        let parts = text.split(separator: ".").map { Array($0.utf8) }
        guard values.count == 1, parts.count == 3, let payload = Base64URL.decode(parts[1]),
            let claims = JSONValue.parsed(payload)?.object
        else { return wrong("is none") }
        if case .nothing = exchange.proof { return wrong("is of a request that proved nothing") }
        if let subject = head.value("x-user-id"), !subject.isEmpty, claims["sub"]?.string != subject {
            wrong("is of \(claims["sub"]?.string ?? "none"), and the request of \(subject)")
        }
        if claims["iss"]?.string != "https://gateway.example" { wrong("has another issuer") }
        let now = simulation.machine.wallTime / 1_000_000_000
        if (claims["exp"]?.int64 ?? 0) + simulation.plan.skew / 1_000_000_000 + 3 < now { wrong("has expired") }
        assertions += 1
        guard assertions % 16 == 1 else { return }
        let signed = parts[0] + [UInt8(ascii: ".")] + parts[1]
        guard let signature = Base64URL.decode(parts[2]), keys.developer.publicKey.verify(signature, over: signed)
        else {
            return wrong("is not signed by the gateway")
        }
    }
}

/// A collector of traces.
final class Collector: Service {
    /// When each span began and ended. One that was taken, and whose response was lost, may come again.
    private var spans: [String: [Int64]] = [:]
    private var requests: [String: String] = [:]

    init(_ simulation: Simulation) {
        super.init(simulation, at: Address(host: 0x7f00_0001, port: 9104), part: "collector")
    }

    override func respond(_ head: MessageHead, _ body: [UInt8]) -> ServiceResponse {
        let limits = JSONLimits(maximumDepth: 16, maximumBytes: 10_000_000)
        guard head.target == "/v1/traces", let document = (try? JSON.parse(body, limits: limits))?.object,
            let resource = document["resourceSpans"]?.array?.first?.object,
            let all = resource["scopeSpans"]?.array?.first?.object?["spans"]?.array
        else {
            simulation.ledger.violate(.oneLine, "a collector got no traces")
            return ServiceResponse(json: "{}")
        }
        for span in all { check(span.object ?? [:]) }
        return ServiceResponse(json: "{}")
    }

    private func check(_ span: JSONObject) {
        let (trace, id) = (span["traceId"]?.string ?? "", span["spanId"]?.string ?? "")
        let (start, end) = (
            Int64(span["startTimeUnixNano"]?.string ?? "") ?? 0, Int64(span["endTimeUnixNano"]?.string ?? "") ?? -1
        )
        if trace.count != 32 || id.count != 16 || end < start {
            simulation.ledger.violate(.oneLine, "a span is none: \(trace) \(id) \(start) \(end)")
        }
        var (request, path): (String?, String?)
        for attribute in span["attributes"]?.array ?? [] {
            let value = attribute.object?["value"]?.object?["stringValue"]?.string
            if attribute.object?["key"]?.string == "martlet.request_id" { request = value }
            if attribute.object?["key"]?.string == "url.path" { path = value }
        }
        if let old = spans.updateValue([start, end], forKey: trace + id), old != [start, end] {
            simulation.ledger.violate(.oneLine, "two spans are \(id)")
        }
        guard span["kind"]?.int64 == 2, let request else { return }
        if path?.contains("?") != false {
            simulation.ledger.violate(.oneLine, "the span of \(request) has a query, or no path")
        }
        if let old = requests.updateValue(id, forKey: request), old != id {
            simulation.ledger.violate(.oneLine, "request \(request) \(path ?? "") has two spans")
        }
    }
}

/// A service that decides about credentials.
final class Robots: Service {
    static let signingKey = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

    init(_ simulation: Simulation) {
        super.init(simulation, at: Address(host: 0x7f00_0001, port: 9105), part: "robots")
    }

    override func respond(_ head: MessageHead, _ body: [UInt8]) -> ServiceResponse {
        let credential = JSONValue.parsed(body)?.object?["credential"]?.object
        guard let value = credential?["value"]?.string, let id = head.value("webhook-id"),
            let time = head.value("webhook-timestamp").flatMap({ Int64($0) }),
            let signer = WebhookSigner(Secret(Array(Self.signingKey.utf8))),
            signer.headers(id: id, at: UnixTime(seconds: time), body: body).last?.value
                == head.value("webhook-signature")
        else {
            simulation.ledger.violate(.identity, "a service was asked without a signature: \(head.fields)")
            return ServiceResponse("400 Bad Request", json: "{}")
        }
        let name = value.hasPrefix("pt_") ? String(value.dropFirst(3)) : value
        switch name {
        case "ada":
            let reuse = random.pick([
                "", ",\"cache_for\":2", ",\"cache_for\":9,\"cache_key\":[\"path\"]",
                ",\"cache_for\":9,\"cache_key\":[\"host\"]",
            ])
            return ServiceResponse(
                json:
                    "{\"active\":true,\"subject\":\"ada\",\"claims\":{\"tier\":\"gold\",\"level\":9,\"teams\":\"a team\",\"name\":\"Zed\"}\(reuse)}"
            )
        case "bob":
            let time = simulation.machine.wallTime / 1_000_000_000 + 900
            return ServiceResponse(
                json:
                    "{\"active\":true,\"subject\":\"bob\",\"claims\":{\"tier\":\"gold\",\"level\":3},\"expires_at\":\(time)}"
            )
        case "old": return ServiceResponse(json: "{\"active\":true,\"subject\":\"old\",\"expires_at\":1700000000}")
        case "denied": return ServiceResponse("403 Forbidden", json: "{}")
        case "broken":
            return ServiceResponse(
                json: random.pick(["{\"active\":7}", "[", "{\"active\":true}", "{\"active\":true,\"subject\":\"\"}"]))
        case "busy":
            return ServiceResponse(
                random.pick(["503 Service Unavailable", "429 Too Many Requests", "400 Bad Request"]), json: "{}")
        default: return ServiceResponse(json: "{\"active\":false,\"code\":\"gone\",\"cache_for\":1}")
        }
    }
}

/// An upstream that gets copies of requests.
final class Shadow: Service {
    init(_ simulation: Simulation, _ last: Int) {
        super.init(simulation, at: Address(last, 9106), part: last == 120 ? "shadow" : "other shadow")
    }

    override func respond(_ head: MessageHead, _ body: [UInt8]) -> ServiceResponse {
        guard let exchange = simulation.ledger.exchange(ofPath: head.target) else {
            simulation.ledger.violate(.routing, "a mirror got \(head.start), which no client sent")
            return ServiceResponse(json: "{}")
        }
        func wrong(_ what: String) {
            simulation.ledger.violate(.routing, "a copy of request \(exchange.number) \(exchange.sent) \(what)")
        }
        if !exchange.path.hasPrefix("/copied/") { wrong("was sent") }
        if head.value("x-mirrored") != "1" || head.value("host") != "shadow.example" { wrong("is not marked") }
        for name in ["authorization", "cookie", "dpop", "x-auth-assertion"] where head.value(name) != nil {
            wrong("has \(name)")
        }
        if head.method != exchange.method { wrong("is a \(head.method)") }
        if body != exchange.body { wrong("has another body") }
        simulation.ledger.checkIdentity(head.fields, of: exchange)
        return ServiceResponse(random.pick(["200 OK", "500 Internal Server Error"]), json: "{}")
    }
}

/// Says whether an upstream is ready.
final class Prober: Service {
    init(_ simulation: Simulation, _ last: Int) {
        super.init(simulation, at: Address(last, 9111), part: "prober")
    }

    override func respond(_ head: MessageHead, _ body: [UInt8]) -> ServiceResponse {
        if head.start != "GET /ready?a=b HTTP/1.1" { simulation.ledger.violate(.routing, "a probe is \(head.start)") }
        return ServiceResponse(
            random.chance(100)
                ? "500 Internal Server Error" : random.pick(["204 No Content", "200 OK", "404 Not Found"]), json: "")
    }
}

/// An upstream over HTTP/2 that says by gRPC whether it is ready.
final class Called {
    private let simulation: Simulation
    private var random: SeededRandom

    init(_ simulation: Simulation) {
        self.simulation = simulation
        random = SeededRandom(seed: simulation.plan.seed, part: "called")
        let network = simulation.machine.network
        // libcurl polls without a pause after it has sent a part of a body over HTTP/2, until the response comes.
        var weather = simulation.plan.weather
        weather.short = 0
        network.hosts[Address(131, 0).host] = weather
        network.services[Address(131, 9112)] = { [unowned self] in acceptCheck($0) }
        network.services[Address(131, 9113)] = { [unowned self] in accept($0) }
    }

    private func accept(_ stream: Stream) {
        let peer = Peer(stream)
        let connection = UpstreamStreams(simulation, peer, SeededRandom(seed: random.next()))
        peer.received = { connection.received($0) }
        peer.ended = { _ in peer.received = { _ in } }
        stream.watcher?(stream)
    }

    private func acceptCheck(_ stream: Stream) {
        let peer = Peer(stream)
        let session = FrameSession(isServer: true, settings: [])
        func flush() {
            session.exchange(with: peer) { event in
                switch event {
                case .head(let id, _, let isEnd): if isEnd { respond(id, session) }
                case .data(let id, let bytes, let isEnd):
                    session.consumed(bytes.count, of: id)
                    if isEnd { respond(id, session) }
                case .closed, .goAway: break
                }
            }
        }
        peer.received = { bytes in if session.receive(bytes) { flush() } else { peer.abort() } }
        peer.ended = { _ in peer.received = { _ in } }
        flush()
        stream.watcher?(stream)
    }

    private func respond(_ id: Int32, _ session: FrameSession) {
        let isServing = !random.chance(100)
        session.respond(id, [(":status", "200"), ("content-type", "application/grpc")], hasBody: true)
        session.append([0, 0, 0, 0, 2, 8, isServing ? 1 : 2], to: id)
        session.end(id, trailer: [("grpc-status", "0")])
    }
}

/// An upstream to which the gateway names the client of each connection.
final class Informed {
    private unowned let simulation: Simulation
    private var random: SeededRandom
    private static let signature: [UInt8] = [13, 10, 13, 10, 0, 13, 10, 0x51, 0x55, 0x49, 0x54, 10, 0x21, 0x11]

    init(_ simulation: Simulation) {
        self.simulation = simulation
        random = SeededRandom(seed: simulation.plan.seed, part: "informed")
        simulation.machine.network.services[Address(130, 9110)] = { [unowned self] in accept($0) }
    }

    private func accept(_ stream: Stream) {
        let peer = Peer(stream)
        let connection = UpstreamConnection(simulation, peer, SeededRandom(seed: random.next()))
        var header: [UInt8]? = []
        peer.received = { [unowned self] bytes in
            guard var begun = header else { return connection.received(bytes) }
            begun += bytes
            header = begun
            guard begun.count >= 16 else { return }
            let end = 16 + Int(begun[14]) << 8 + Int(begun[15])
            guard begun.starts(with: Self.signature), begun.count >= end else {
                if !begun.starts(with: Self.signature) {
                    simulation.ledger.violate(.routing, "an upstream got no PROXY header: \(begun.prefix(20))")
                }
                return
            }
            header = nil
            // Whoever is a client is 10.0.0.200 or above.
            if begun[16] != 10 || begun[19] < 200 {
                simulation.ledger.violate(.routing, "an upstream got a PROXY header of \(begun[16..<20])")
            }
            if begun.count > end { connection.received(Array(begun[end...])) }
        }
        peer.ended = { _ in peer.received = { _ in } }
        stream.watcher?(stream)
    }
}
