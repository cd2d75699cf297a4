import WorldMachine

/// A client that tries what only some configurations have, each time one thing, and says what has to come of it.
final class Explorer {
    typealias Next = (Exchange?) -> Void

    unowned let client: Client
    /// The user who looks after an account, and how many there were.
    var current: Member?
    var members = 0
    /// A session that is bound to a key.
    var bound: Session?
    private var trials: [(@escaping Next) -> Void] = []

    init(_ client: Client) {
        self.client = client
        func add(_ feature: Feature, _ more: [(@escaping Next) -> Void]) { if plan.has(feature) { trials += more } }
        add(.routes, [redirect, respond, pick, rewrite, preflight, crossOrigin, split, describe])
        add(.limits, [count, countOwn, sendTooMuch])
        add(
            .proxies,
            [introduce, introduceWrongly, forward, forwardWrongly, check, check, callCheck, callCheck, secure])
        add(.programs, [presentKey, sign, sign, callRobot, callRobot, beGold])
        add(.traffic, [flood, flood, inform, echo])
        add(.copies, [copy])
        add(.paths, [walk, walk, sendLargeHead, resetMany])
        add(.streams, [openStream, age, call])
        add(.members, [member])
        add(.company, [presentToken, presentToken, loginWithToken])
        if plan.callers.hasBrowsers { add(.company, [signInAtCompany, signInAtCompany]) }
        add(.endpoints, [discover, babble, babble, askFromPage, attempt, browse, browse])
        add(.bound, [bind])
        add(.operators, [look, endOthers, setClaims, beAdmin, beRecent, openAccount])
        add(.members, [signUp, openAccount])
    }

    var simulation: Simulation { client.simulation }
    var plan: Plan { client.simulation.plan }

    func act(_ next: @escaping Next) {
        guard !trials.isEmpty else { return next(nil) }
        if living == nil, client.random.chance(300) { return client.login(next) }
        client.random.pick(trials)(next)
    }

    /// The session of the client, if it may be used.
    var living: Session? {
        guard let session = client.session, session.endAsked == nil, !session.isUnsure else { return nil }
        return session
    }

    /// The proof of who the client is, if it has one, and the field for it.
    var proof: (proof: Proof, fields: [String]) {
        guard let session = living, let token = session.access.last?.token else { return (.nothing, []) }
        return (.session(session), ["Authorization: Bearer \(token)"])
    }

    func violate(_ invariant: Invariant, _ exchange: Exchange, _ what: String) {
        simulation.ledger.violate(invariant, "request \(exchange.number) \(exchange.sent) \(what)")
    }

    // MARK: Requests

    /// One request over HTTP/1.
    struct Trial {
        var method = "GET"
        /// A number is added to one that ends with `/`.
        var path: String
        var proof = Proof.nothing
        var needsProof = false
        var host = "api.example.com"
        var fields: [String] = []
        var body: [UInt8]?
        /// The last number of the address that the client has; its own without one.
        var from: Int?
        var port: UInt16 = 8080
        /// What is sent before the request.
        var introduction: [UInt8] = []
        /// The target, where it is not the path.
        var target: ((Exchange) -> String)?
        /// Further fields, which depend on the number of the request.
        var more: ((Exchange) -> [String])?
        /// What is wrong with what an upstream has got.
        var inspect: ((Exchange, MessageHead) -> String?)?

        init(_ path: String) { self.path = path }
    }

    var nextPort: Int {
        client.lastPort += 1
        return client.lastPort
    }

    var gateway: Gateway { simulation.gateways[client.random.below(simulation.gateways.count)] }

    /// Sends a request on a connection of its own.
    /// - Parameter check: gets the response, whatever it is.
    func send(_ trial: Trial, to other: Gateway? = nil, _ check: @escaping (Exchange) -> Void) {
        let gateway = other ?? self.gateway
        let exchange = simulation.ledger.open(
            gateway: gateway, method: trial.method, path: trial.path, proof: trial.proof, needsProof: trial.needsProof)
        let source = Address(trial.from ?? 200 + client.index % 50, nextPort)
        let connection = ClientConnection(simulation, gateway, from: source, at: trial.port)
        connection.retire()
        let target = trial.target?(exchange) ?? exchange.path
        var fields = trial.fields + (trial.more?(exchange) ?? [])
        exchange.sent = ["\(trial.method) \(target)", "Host: \(trial.host)"] + fields
        if let body = trial.body {
            exchange.body = body
            fields.append("Content-Length: \(body.count)")
        }
        if let inspect = trial.inspect { exchange.inspect = { [unowned exchange] in inspect(exchange, $0) } }
        exchange.done = { exchange in
            connection.close()
            check(exchange)
        }
        let head =
            "\(trial.method) \(target) HTTP/1.1\r\nHost: \(trial.host)\r\n" + fields.map { $0 + "\r\n" }.joined()
            + "\r\n"
        var steps: [Outbox.Step] = trial.introduction.isEmpty ? [] : [.bytes(trial.introduction)]
        if client.random.chance(100) { steps.append(.pause(Int64(client.random.within(1...300)) * 1_000_000)) }
        steps.append(.bytes(Array(head.utf8)))
        if let body = trial.body, !body.isEmpty { steps.append(.bytes(body)) }
        connection.send(exchange, steps)
    }

    /// Sends a request that the gateway decides about by itself.
    /// - Parameter check: finds what is wrong with a response, which is none that an overloaded gateway gives.
    func send(_ trial: Trial, _ next: @escaping Next, _ check: @escaping (Exchange) -> String?) {
        send(trial) { [self] exchange in
            if exchange.isDecided, let wrong = check(exchange) {
                violate(.routing, exchange, "got \(exchange.status): \(wrong)")
            }
            next(exchange)
        }
    }
}

extension Exchange {
    /// Whether its response says what the gateway has decided, and nothing of outages.
    var isDecided: Bool { ![0, 408, 429, 502, 503, 504].contains(status) }
    /// Whether an upstream has responded.
    var isFromUpstream: Bool { head?.value("x-world") != nil }

    /// Its number, as the last part of a path.
    var last: String { "\(number)" }
}
