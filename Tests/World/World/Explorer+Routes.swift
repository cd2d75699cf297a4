import WorldMachine

/// Routes that match, rewrite, redirect and respond in every way.
extension Explorer {
    private func location(_ exchange: Exchange, _ status: Int, _ wanted: String) -> String? {
        let found = exchange.head?.value("location") ?? "nothing"
        return exchange.status == status && found == wanted ? nil : "it leads to \(found), not to \(wanted)"
    }

    func redirect(_ next: @escaping Next) {
        let query = client.random.pick(["", "?a=1&b=%20"])
        if client.random.chance(500) {
            var trial = Trial("/old/")
            trial.target = { $0.path + query }
            return send(trial, next) { [self] in location($0, 308, "/pub\($0.path)\(query)") }
        }
        var trial = Trial("/moved/")
        let isMatch = client.random.chance(700)
        trial.host = isMatch ? "Shop.Tenant.example:80" : "tenant.example"
        trial.target = { $0.path + query }
        send(trial, next) { [self] exchange in
            guard isMatch else { return exchange.status == 404 ? nil : "another host has the route" }
            let more = query.isEmpty ? "" : "&" + query.dropFirst()
            return location(exchange, 302, "https://Shop.Tenant.example/new?from=\(exchange.path)\(more)")
        }
    }

    func respond(_ next: @escaping Next) {
        if client.random.chance(500) {
            var trial = Trial("/said/")
            trial.method = client.random.pick(["GET", "HEAD", "POST"])
            if trial.method == "POST" {
                trial.body = [UInt8](repeating: 1, count: client.random.pick([0, 10, 100_000]))
            }
            return send(trial, next) { exchange in
                let body = trial.method == "HEAD" ? "" : "gone"
                guard exchange.status == 410, exchange.head?.value("x-said") == "yes" else {
                    return "it is not as configured"
                }
                return !exchange.isComplete || String(decoding: exchange.responseBody, as: UTF8.self) == body
                    ? nil : "it has another body"
            }
        }
        var trial = Trial("/only/")
        trial.method = client.random.pick(["GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "BREW"])
        if trial.method == "PUT" || trial.method == "POST" { trial.body = [] }
        send(trial, next) { exchange in
            if trial.body != nil { return exchange.status == 200 ? nil : "its method is allowed" }
            let allow = exchange.head?.value("allow") ?? ""
            return exchange.status == 405 && allow.contains("POST") && allow.contains("PUT")
                ? nil : "its method is not allowed"
        }
    }

    /// Which of several routes it is.
    func pick(_ next: @escaping Next) {
        let (host, part, fields, query, status): (String, String, [String], String, Int) = client.random.pick([
            ("api.example.com", "x", ["X-Beta: b2"], "?w=1&v=17", 201),
            ("api.example.com", "x", ["X-Beta: b2"], "?v=17a", 404),
            ("api.example.com", "x", ["X-Beta: b2"], "?v=%31", 201),
            ("api.example.com", "x", ["X-Beta: c2"], "?v=1", 404),
            ("api.example.com", "x", ["X-Gamma: ", "X-Delta: d"], "", 206),
            ("api.example.com", "x", ["X-Gamma: 1"], "", 404),
            ("api.example.com", "some-12", [], "", 202), ("api.example.com", "some-1234", [], "", 404),
            ("api.example.com", "x/abc", [], "?v", 203), ("api.example.com", "x/abd", [], "", 404),
            ("EXACT.example", "x", [], "", 207), ("a.b.sub.example:80", "x", [], "", 207),
            ("sub.example", "x", [], "", 404),
        ])
        var trial = Trial("/pick/\(part)/")
        (trial.host, trial.fields) = (host, fields)
        trial.target = { $0.path + query }
        send(trial, next) { $0.status == status ? nil : "it is to be \(status)" }
    }

    func rewrite(_ next: @escaping Next) {
        let part = client.random.pick(["item", "thing", "other"])
        let query = client.random.pick(["", "?a=b"])
        var trial = Trial("/v1/\(part)/")
        trial.fields = ["X-Const: forged", "X-Drop: forged", "x_drop: forged", "Cookie: __Host-martlet=; a=b"]
        if plan.callers.hasBrowsers { trial.fields[3] = "Cookie: a=b" }
        trial.target = { $0.path + query }
        trial.inspect = { exchange, head in
            let tail = query.isEmpty ? "" : query.dropFirst()
            let wanted =
                part == "other"
                ? "/api/other/\(exchange.last)\(query)"
                : "/api/\(part)s/\(exchange.last)?kind=\(part)\(tail.isEmpty ? "" : "&")\(tail)"
            if head.target != wanted { return "at \(head.target), not \(wanted)" }
            if head.value("host") != "inner.example" { return "for \(head.value("host") ?? "no host")" }
            if head.value("x-const") != "c 1" { return "without its constant" }
            return head.fields.contains { $0.value.contains("forged") } ? "with a field that is to be removed" : nil
        }
        send(trial, next) { exchange in
            guard exchange.isFromUpstream else { return nil }
            if exchange.head?.value("x-resp") != "r" { return "its field is missing" }
            return exchange.head?.value("set-cookie") == nil ? nil : "its field is not removed"
        }
    }

    // MARK: Other origins

    private static let origins = [
        ("https://app.example.org", true), ("https://a.b.friends.example", true), ("https://friends.example", false),
        ("http://a.friends.example", false), ("https://evil.example", false), ("null", false),
    ]

    func preflight(_ next: @escaping Next) {
        let (origin, isAllowed) = client.random.pick(Self.origins)
        var trial = Trial("/shared/")
        trial.method = "OPTIONS"
        trial.fields = [
            "Origin: \(origin)", "Access-Control-Request-Method: PUT", "Access-Control-Request-Headers: x-a",
        ]
        send(trial, next) { exchange in
            guard exchange.status == 204, !exchange.isFromUpstream else { return "it is no preflight's" }
            let found = exchange.head?.value("access-control-allow-origin")
            if isAllowed != (found == origin) || (!isAllowed && found != nil) {
                return "it allows \(found ?? "nothing") to \(origin)"
            }
            return isAllowed == (exchange.head?.value("access-control-allow-methods") != nil)
                ? nil : "its methods are wrong"
        }
    }

    func crossOrigin(_ next: @escaping Next) {
        let (origin, isAllowed) = client.random.pick(Self.origins)
        var trial = Trial("/shared/")
        trial.method = client.random.pick(["GET", "OPTIONS", "DELETE"])
        trial.fields = ["Origin: \(origin)"]
        send(trial) { [self] exchange in
            let found = exchange.head?.value("access-control-allow-origin")
            let varies = exchange.head?.fields.contains {
                $0.name.lowercased() == "vary" && $0.value.contains("Origin")
            }
            // Also of an outage, so that the page can read it; not of a connection that has no turn.
            if exchange.status != 0, exchange.status != 503, exchange.status != 408 {
                if found != (isAllowed ? origin : nil) { violate(.routing, exchange, "allows \(found ?? "nothing")") }
                if varies != true { violate(.routing, exchange, "does not vary by origin") }
            }
            next(exchange)
        }
    }

    // MARK: Upstreams

    /// Whoever it is stays with one of two upstreams.
    func split(_ next: @escaping Next) {
        let (proof, fields) = proof
        var trial = Trial("/split/")
        (trial.proof, trial.fields) = (proof, fields)
        trial.inspect = { [self] exchange, head in
            guard let host = head.value("host"), ["blue.example", "green.example"].contains(host) else {
                return "for no upstream"
            }
            var key = "address"
            if case .session(let session) = proof { key = session.subject }
            return simulation.offers.stays(key, with: host)
        }
        send(trial, next) { _ in nil }
    }

    /// What upstreams get of a session.
    func describe(_ next: @escaping Next) {
        guard let session = living, let token = session.access.last?.token else { return client.login(next) }
        var trial = Trial("/described/")
        (trial.proof, trial.needsProof) = (.session(session), true)
        trial.fields = ["Authorization: Bearer \(token)"]
        trial.inspect = { [self] _, head in
            if head.value("x-user-session") != session.id {
                return "as session \(head.value("x-user-session") ?? "none")"
            }
            let provider = String(session.identity.prefix { $0 != ":" })
            if head.value("x-user-provider") != provider {
                return "as of \(head.value("x-user-provider") ?? "no provider")"
            }
            if head.value("x-user-route") != "described" { return "without its route" }
            if head.value("authorization") != "Bearer \(token)" { return "without its credential" }
            guard let since = head.value("x-user-since").flatMap({ Int64($0) }),
                let until = head.value("x-user-until").flatMap({ Int64($0) })
            else { return "without its times" }
            let now = simulation.machine.wallTime / 1_000_000_000
            let skew = plan.skew / 1_000_000_000 + 2
            return since > now + skew || until < now - skew - 60 ? "with wrong times" : nil
        }
        send(trial, next) { _ in nil }
    }
}
