import WorldMachine

/// Limits of rates and sizes, and requests beyond them.
extension Explorer {
    private static let burst = 5
    private static let rate = 2.0

    /// A tenant of its own sends more than may pass.
    func count(_ next: @escaping Next) {
        let gateway = gateway
        let tenant = "t\(client.random.next())"
        let count = client.random.within(4...9)
        let began = simulation.machine.now
        var (left, passed) = (count, 0)
        for _ in 0..<count {
            var trial = Trial("/counted/")
            trial.fields = ["X-Tenant: \(tenant)"]
            trial.host = client.random.pick(["api.example.com", "API.example.com", "other.example"])
            trial.inspect = { [self] exchange, _ in
                if exchange.sightings > 1 { return nil }
                passed += 1
                let time = Double(simulation.machine.now - began) / 1e9
                let most = Double(Self.burst + plan.workers) + Self.rate * time + 1
                return Double(passed) > most ? "as one of \(passed) requests of \(tenant) in \(time) s" : nil
            }
            send(trial, to: gateway) { [self] exchange in
                left -= 1
                if exchange.isDecided || exchange.status == 429, !exchange.isMalformed {
                    let policy = exchange.head?.fields.first { $0.name.lowercased() == "ratelimit-policy" }?.value ?? ""
                    if !policy.contains("\"named\";q=2;w=1") {
                        violate(.bounds, exchange, "says nothing of its limits: \(policy)")
                    }
                }
                if exchange.status == 429, exchange.head?.value("retry-after") == nil {
                    violate(.bounds, exchange, "does not say when to come again")
                }
                if left == 0 { next(exchange) }
            }
        }
    }

    /// A caller sends more than it may.
    func countOwn(_ next: @escaping Next) {
        guard let session = living, let token = session.access.last?.token else { return client.login(next) }
        let count = client.random.within(2...8)
        var left = count
        for _ in 0..<count {
            var trial = Trial("/own/")
            (trial.proof, trial.needsProof) = (.session(session), true)
            trial.fields = ["Authorization: Bearer \(token)"]
            send(trial) { exchange in
                left -= 1
                if left == 0 { next(exchange) }
            }
        }
    }

    /// A body that is larger than the route takes, with its length or in chunks.
    func sendTooMuch(_ next: @escaping Next) {
        var trial = Trial("/counted/")
        trial.method = "POST"
        trial.fields = ["X-Tenant: big\(client.random.next())"]
        trial.body = [UInt8](repeating: 7, count: 30_000)
        if client.random.chance(300) { trial.fields.append("Expect: 100-continue") }
        trial.inspect = { _, _ in "with more than it may have" }
        send(trial, next) { exchange in exchange.status == 413 ? nil : "it is too large" }
    }

    // MARK: Paths and heads

    /// Paths that are written in unusual ways.
    func walk(_ next: @escaping Next) {
        let merges = plan.mergesSlashes
        let (before, after, seen): (String, String, String?) = client.random.pick([
            ("/pub//", "", merges ? "/pub/" : nil), ("/pub/./", "", nil), ("/pub/../pub/", "", nil),
            ("/pub/%2e%2e/", "", nil),
            ("/pub/%41b/", "", "/pub/Ab/"), ("/pub/caf\u{e9}/", "", "/pub/caf%C3%A9/"),
            ("/pub/%e2%80%a6/", "", "/pub/%E2%80%A6/"),
            ("/pub/\u{ff0f}/", "", nil), ("/pub/a%00/", "", nil), ("/pub/%zz/", "", nil), ("/pub/%ff/", "", nil),
            ("/pub/a;b=c/", "", "/pub/a;b=c/"),
            ("/pub/x/", "?q=\u{e9}", "/pub/x/"), ("/pub/\u{ff05}41/", "", nil),
        ])
        var trial = Trial("/pub/")
        trial.target = { "\(before)\($0.number)\(after)" }
        trial.inspect = { exchange, head in
            guard let seen else { return "at \(head.target)" }
            let path = String(head.target.prefix { $0 != "?" })
            return path == seen + exchange.last ? nil : "at \(path), not \(seen)\(exchange.last)"
        }
        send(trial, next) { exchange in
            if seen == nil { return exchange.status == 400 ? nil : "its path means two things" }
            return exchange.status == 400 ? "its path is valid" : nil
        }
    }

    func sendLargeHead(_ next: @escaping Next) {
        var trial = Trial("/pub/")
        trial.fields =
            client.random.chance(500)
            ? (0..<plan.headFields).map { "X-Field-\($0): 1" }
            : ["X-Large: \(String(repeating: "x", count: plan.headBytes))"]
        trial.inspect = { _, _ in "with more than it may have" }
        send(trial, next) { exchange in exchange.status == 431 ? nil : "its head is too large" }
    }

    /// Many streams that are given up right away.
    func resetMany(_ next: @escaping Next) {
        let gateway = gateway
        let connection = HTTP2Connection(
            simulation, gateway, from: Address(200 + client.index % 50, nextPort),
            SeededRandom(seed: client.random.next()))
        let count = client.random.within(3...30)
        var left = count
        for _ in 0..<count {
            let exchange = simulation.ledger.open(
                gateway: gateway, method: "GET", path: "/pub/", proof: .nothing, needsProof: false)
            exchange.done = { exchange in
                left -= 1
                guard left == 0 else { return }
                connection.close()
                next(exchange)
            }
            connection.send(exchange, fields: [], parts: [], pauses: [], cut: client.random.chance(800) ? 0 : nil)
        }
    }
}
