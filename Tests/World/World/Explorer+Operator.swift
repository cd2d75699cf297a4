import MartletJSON
import WorldMachine

/// An operator, who looks at gateways and ends sessions.
extension Explorer {
    /// A request to the admin listener of a gateway.
    private func manage(
        _ method: String, _ path: String, body: String? = nil, target: String? = nil, to gateway: Gateway,
        _ done: @escaping (Exchange) -> Void
    ) {
        var trial = Trial(path)
        (trial.method, trial.port, trial.from) = (method, 9901, 243)
        trial.host = "10.0.0.\(gateway.index):9901"
        trial.fields = ["Authorization: Bearer \(EventReader.token)"]
        if let target { trial.target = { _ in target } }
        if let body {
            trial.body = Array(body.utf8)
            trial.fields.append("Content-Type: application/json")
        }
        send(trial, to: gateway, done)
    }

    func look(_ next: @escaping Next) {
        let path = client.random.pick([
            "/status", "/routes", "/upstreams", "/providers", "/store", "/accounts", "/explain?path=/me/x", "/readyz",
            "/",
        ])
        manage("GET", String(path.prefix { $0 != "?" }), target: path, to: gateway) { [self] exchange in
            let isKnown = path != "/accounts" || plan.callers.hasAccounts
            if exchange.isDecided, exchange.status != 200, isKnown {
                violate(.routing, exchange, "got \(exchange.status)")
            }
            if exchange.status == 200, exchange.isComplete, path != "/", path != "/readyz",
                (try? JSON.parse(exchange.responseBody, limits: JSONLimits(maximumDepth: 64, maximumBytes: 4_000_000)))
                    == nil
            {
                violate(.routing, exchange, "is no JSON")
            }
            next(exchange)
        }
    }

    /// Ends a session, or all of a subject: as if the user had done it.
    func endOthers(_ next: @escaping Next) {
        guard let session = living else { return client.login(next) }
        let (gateway, book) = (gateway, simulation.ledger.accounts)
        switch client.random.below(4) {
        case 0:
            session.endAsked = simulation.machine.now
            let path = "/sessions/\(session.id)"
            manage("DELETE", path, target: "\(path)?subject=\(session.subject)", to: gateway) { [self] exchange in
                if exchange.status == 204 {
                    session.end = session.end ?? (simulation.machine.now, exchange.gateway, exchange.incarnation)
                } else {
                    session.isUnsure = true
                }
                next(exchange)
            }
        case 1:
            let sessions = book.askRevocation(of: session.subject)
            manage("DELETE", "/subjects/\(session.subject)/sessions", to: gateway) { [self] exchange in
                if exchange.status == 204 {
                    book.end(sessions, exchange)
                } else {
                    for each in sessions { each.isUnsure = true }
                }
                simulation.ledger.closeEndings(of: session.subject)
                next(exchange)
            }
        case 2:
            manage("GET", "/sessions", target: "/sessions?subject=\(session.subject)", to: gateway) { [self] exchange in
                if exchange.status == 200, exchange.isComplete, session.endAsked == nil, !session.isUnsure,
                    !simulation.mayForget(session),
                    !String(decoding: exchange.responseBody, as: UTF8.self).contains(session.id)
                {
                    violate(.outage, exchange, "does not show the living session \(session.id)")
                }
                next(exchange)
            }
        default: manage("GET", "/subjects/\(session.subject)", to: gateway) { next($0) }
        }
    }

    /// Claims that an operator sets, and the routes that they open.
    func setClaims(_ next: @escaping Next) {
        guard plan.callers.hasAccounts, let session = living else { return client.login(next) }
        let level = client.random.within(1...5)
        manage(
            "PATCH", "/subjects/\(session.subject)/claims", body: "{\"level\":\(level),\"teams\":[\"t\(level)\"]}",
            to: gateway
        ) { [self] exchange in
            guard exchange.status == 200 else { return next(exchange) }
            manage("GET", "/subjects/\(session.subject)/claims", to: self.gateway) { next($0) }
        }
    }

    // MARK: Claims and times

    /// A route for those alone whose claims are configured.
    func beAdmin(_ next: @escaping Next) {
        guard let session = living, let token = session.access.last?.token else { return client.login(next) }
        var trial = Trial("/admins/")
        trial.needsProof = true
        (trial.proof, trial.fields) = (.program(subject: session.subject), ["Authorization: Bearer \(token)"])
        let isAdmin = plan.callers.hasAccounts && session.identity == "password:u0"
        trial.inspect = { _, head in head.value("x-role") == "admin" ? nil : "as \(head.value("x-role") ?? "no role")" }
        send(trial, next) { exchange in
            if exchange.isFromUpstream {
                return isAdmin ? nil : "it is no admin"
            }
            return isAdmin && exchange.status == 403 ? "it is an admin" : nil
        }
    }

    /// A route for those alone who have authenticated a moment ago.
    func beRecent(_ next: @escaping Next) {
        guard let session = living, let token = session.access.last?.token else { return client.login(next) }
        var trial = Trial("/recent/")
        trial.needsProof = true
        (trial.proof, trial.fields) = (.program(subject: session.subject), ["Authorization: Bearer \(token)"])
        let age = simulation.machine.now - session.startedAt
        send(trial, next) { [self] exchange in
            if exchange.isFromUpstream {
                return age > 4_000_000_000 + plan.skew && session.identity.hasPrefix("password")
                    ? "its user came long ago" : nil
            }
            guard exchange.status == 401 else { return nil }
            let challenge = exchange.head?.value("www-authenticate") ?? ""
            let isLate = String(decoding: exchange.responseBody, as: UTF8.self).contains("reauthentication_required")
            return !isLate || challenge.contains("max_age=3") ? nil : "its challenge is \(challenge)"
        }
    }

    // MARK: Pages

    private static let page = ["Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document", "Accept: text/html"]
    private static let posted = [
        "Content-Type: application/x-www-form-urlencoded", "Origin: \(BrowserUser.origin)", "Sec-Fetch-Mode: navigate",
        "Accept: text/html",
    ]

    private static func cookies(_ exchange: Exchange) -> [String] {
        (exchange.head?.fields ?? []).filter { $0.name.lowercased() == "set-cookie" }
            .map { String($0.value.prefix { $0 != ";" }) }.filter { !$0.hasSuffix("=") }
    }

    private static func token(_ exchange: Exchange) -> String? {
        let text = String(decoding: exchange.responseBody, as: UTF8.self)
        guard let start = text.firstRange(of: "name=\"csrf\" value=\"") else { return nil }
        return String(text[start.upperBound...].prefix { $0 != "\"" })
    }

    private func open(_ target: String, _ cookies: [String], _ done: @escaping (Exchange) -> Void) {
        var trial = Trial(String(target.prefix { $0 != "?" }))
        trial.fields = Self.page + (cookies.isEmpty ? [] : ["Cookie: \(cookies.joined(separator: "; "))"])
        trial.target = { _ in target }
        send(trial, done)
    }

    private func post(
        _ path: String, _ body: String, _ cookies: [String], _ proof: Proof, _ done: @escaping (Exchange) -> Void
    ) {
        var trial = Trial(path)
        (trial.method, trial.proof, trial.body) = ("POST", proof, Array(body.utf8))
        trial.fields = Self.posted + ["Cookie: \(cookies.joined(separator: "; "))"]
        send(trial, done)
    }

    /// Signs in on the page, opens the account's page, and sends one of its forms.
    func openAccount(_ next: @escaping Next) {
        guard plan.callers.hasBrowsers else { return next(nil) }
        let identity = client.subject
        open("/auth/sign-in?return_to=%2Fpub%2F", []) { [self] exchange in
            guard exchange.status == 200, exchange.isComplete, let csrf = Self.token(exchange) else {
                return next(exchange)
            }
            let form = Self.cookies(exchange)
            simulation.ledger.accounts.sends(identity)
            post(
                "/auth/sign-in", "csrf=\(csrf)&username=u\(client.user)&password=secret-0", form,
                .direct(subject: identity)
            ) { [self] login in
                let cookies = form + Self.cookies(login)
                guard login.status == 303, cookies.count > form.count else { return next(login) }
                open("/auth/account", cookies) { [self] page in
                    guard page.status == 200, page.isComplete, let csrf = Self.token(page) else { return next(page) }
                    send(form: csrf, cookies, next)
                }
            }
        }
    }

    private func send(form csrf: String, _ cookies: [String], _ next: @escaping Next) {
        let isForged = client.random.chance(200)
        let (path, body): (String, String) = client.random.pick([
            ("sessions/ses_0123456789abcdef0123456789abcdef", ""), ("unlink/password", ""), ("delete", ""),
            ("link/company", ""),
            ("link/nothing", ""), ("password", "&current_password=secret-0&new_password=another%20secret"),
        ])
        post("/auth/account/\(path)", "csrf=\(isForged ? "forged" : csrf)\(body)", cookies, .nothing) {
            [self] exchange in
            if isForged, exchange.status / 100 == 3 {
                violate(.identity, exchange, "has a forged form, and is carried out")
            }
            let isPossible = [303, 400, 401, 403, 404, 409].contains(exchange.status)
            if exchange.isDecided, !isPossible { violate(.routing, exchange, "got \(exchange.status)") }
            next(exchange)
        }
    }

    /// Registers on the page.
    func signUp(_ next: @escaping Next) {
        guard plan.callers.hasBrowsers else { return next(nil) }
        open("/auth/sign-up", []) { [self] exchange in
            guard exchange.status == 200, exchange.isComplete, let csrf = Self.token(exchange) else {
                return next(exchange)
            }
            let name = "page\(client.random.below(100))"
            let isForged = client.random.chance(200)
            post(
                "/auth/sign-up",
                "csrf=\(isForged ? "forged" : csrf)&username=\(name)&email=\(name)%40example.com&name=N&password=a%20long%20secret",
                Self.cookies(exchange), .direct(subject: "people:\(name)")
            ) { [self] done in
                if isForged, [202, 303].contains(done.status) {
                    violate(.identity, done, "has a forged form, and is carried out")
                }
                next(done)
            }
        }
    }
}
