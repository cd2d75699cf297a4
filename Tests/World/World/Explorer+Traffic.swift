import WorldMachine

/// Upstreams that look at what becomes of their requests, and copies.
extension Explorer {
    /// Several requests together, more than a breaker lets pass, or than an upstream may fail.
    func flood(_ next: @escaping Next) {
        let gateway = gateway
        let path = client.random.pick(["/wary/", "/narrowed/", "/narrowed/", "/called/"])
        let count = client.random.within(1...8)
        var left = count
        for _ in 0..<count {
            var trial = Trial(path)
            trial.fields = ["X-Tenant: t\(client.random.below(4))"]
            if client.random.chance(300) {
                trial.method = client.random.pick(["PUT", "POST"])
                trial.body = (0..<client.random.below(3000)).map { UInt8(truncatingIfNeeded: $0) }
            }
            if path == "/narrowed/" {
                trial.inspect = { [self] exchange, _ in
                    simulation.offers.enters(exchange) <= Plan.breadth
                        ? nil : "beside \(simulation.offers.enters(exchange) - 1) others"
                }
            }
            send(trial, to: gateway) { exchange in
                left -= 1
                if left == 0 { next(exchange) }
            }
        }
    }

    /// An upstream hears by the PROXY protocol who its client is.
    func inform(_ next: @escaping Next) {
        var trial = Trial("/informed/")
        if client.random.chance(400) {
            trial.method = "POST"
            trial.body = (0..<client.random.below(3000)).map { UInt8(truncatingIfNeeded: $0) }
        }
        send(trial, next) { _ in nil }
    }

    /// The gateway's own upstream.
    func echo(_ next: @escaping Next) {
        var trial = Trial("/echoing/")
        trial.method = client.random.pick(["GET", "POST", "HEAD"])
        if trial.method == "POST" { trial.body = Array("hello".utf8) }
        trial.fields = ["X-User-Id: forged"]
        send(trial, next) { exchange in
            guard exchange.status == 200 else { return "it is no echo" }
            return String(decoding: exchange.responseBody, as: UTF8.self).contains("forged")
                ? "a client's identity passed" : nil
        }
    }

    /// A request of which another upstream gets a copy.
    func copy(_ next: @escaping Next) {
        let (proof, fields) = proof
        var trial = Trial("/copied/")
        (trial.proof, trial.fields) = (proof, fields + ["X-Mirrored: forged", "DPoP: forged"])
        if client.random.chance(600) {
            trial.method = client.random.pick(["POST", "PUT"])
            let size = client.random.chance(150) ? client.random.within(60_000...80_000) : client.random.below(5000)
            trial.body = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        }
        trial.inspect = { _, head in head.value("x-mirrored") == nil ? nil : "as if it were a copy" }
        send(trial, next) { _ in nil }
    }
}
