import MartletJSON
import WorldMachine

/// What a client does with a browser: it has a session in a cookie, which responses replace, some of which are lost.
final class BrowserUser {
    static let origin = "https://app.example.com"
    private static let name = "__Host-martlet"

    private unowned let client: Client
    private(set) var session: Session?

    init(_ client: Client) { self.client = client }

    private var simulation: Simulation { client.simulation }
    private var machine: Machine { client.simulation.machine }
    private var identity: String { client.subject }

    func act(_ next: @escaping (Exchange?) -> Void) {
        guard let session, session.endAsked == nil, !session.isUnsure || client.random.chance(700),
            let token = session.refreshTokens.last
        else { return open(next) }
        switch client.random.below(20) {
        case 0..<11: use(session, token, next)
        case 11..<14: reuse(session, next)
        case 14..<16: cross(session, token, next)
        case 16: signOut(session, token, next)
        case 17: open(next)
        case 18: watch(session, token, next)
        default:
            client.request("GET", "/auth/sessions", .session(session), fields: [present(token)]) { [self] exchange in
                if let exchange { look(exchange, token, of: session) }
                next(exchange)
            }
        }
    }

    // MARK: Signing in

    /// Loads the page.
    private func open(_ next: @escaping (Exchange?) -> Void) {
        session = nil
        client.request(
            "GET", "/auth/sign-in?return_to=%2Fpub%2F", .nothing,
            fields: ["Sec-Fetch-Mode: navigate", "Accept: text/html"]
        ) { [self] exchange in
            guard let exchange, exchange.status == 200, exchange.isComplete,
                let form = Self.value(Self.name + "-form", exchange),
                let csrf = Self.token(String(decoding: exchange.responseBody, as: UTF8.self))
            else { return next(exchange) }
            send(form, csrf, next)
        }
    }

    private static func token(_ page: String) -> String? {
        guard let start = page.firstRange(of: "name=\"csrf\" value=\"") else { return nil }
        return String(page[start.upperBound...].prefix { $0 != "\"" })
    }

    /// Sends the form.
    private func send(_ form: String, _ csrf: String, _ next: @escaping (Exchange?) -> Void) {
        simulation.ledger.accounts.sends(identity)
        let body = "csrf=\(csrf)&username=u\(client.user)&password=secret-0"
        client.request(
            "POST", "/auth/sign-in", .direct(subject: identity),
            fields: [
                "Content-Type: application/x-www-form-urlencoded", "Origin: \(Self.origin)",
                "Cookie: \(Self.name)-form=\(form)",
            ], body: Array(body.utf8), isSafe: true
        ) { [self] exchange in
            guard let exchange, exchange.status == 303, let token = Self.value(Self.name, exchange) else {
                if let exchange, exchange.status == 401 || exchange.status == 403,
                    // With the store's data the key of forms is lost, until every gateway has the new one.
                    simulation.redis.lastLoss == nil, !simulation.mayForgetUse(since: exchange.sentAt - 30_000_000_000),
                    !simulation.ledger.accounts.mayOvertake(identity, since: exchange.sentAt)
                {
                    simulation.ledger.violate(.outage, "a sign-in got \(exchange.status) in request \(exchange.number)")
                }
                return next(exchange)
            }
            ask(token, of: exchange, next)
        }
    }

    /// Asks whose session it is.
    private func ask(_ token: String, of login: Exchange, _ next: @escaping (Exchange?) -> Void) {
        client.request("GET", "/auth/session", .nothing, fields: ["Cookie: \(Self.name)=\(token)"]) { [self] exchange in
            guard let exchange, exchange.status == 200, exchange.isComplete,
                let members = JSONValue.parsed(exchange.responseBody)?.object,
                let subject = members["subject"]?.string, let id = members["session_id"]?.string
            else { return next(exchange) }
            let session = Session(
                subject: subject, id: id, origin: login, at: machine.now, access: (token, .max, .max), refresh: token)
            session.identity = identity
            simulation.ledger.sessions.append(session)
            simulation.ledger.accounts.begun(session, login)
            self.session = session
            look(exchange, session.refreshTokens[0], of: session)
            next(exchange)
        }
    }

    // MARK: Using it

    func present(_ token: RefreshToken) -> String {
        token.firstUse = token.firstUse ?? machine.now
        return "Cookie: \(Self.name)=\(token.text)"
    }

    /// The value that a response sets a cookie to.
    private static func value(_ name: String, _ exchange: Exchange) -> String? {
        for field in exchange.head?.fields ?? [] where field.name.lowercased() == "set-cookie" {
            let pair = field.value.prefix { $0 != ";" }
            if pair.hasPrefix(name + "="), pair.count > name.count + 1 { return String(pair.dropFirst(name.count + 1)) }
        }
        return nil
    }

    /// What the response to a request with a token says of the token.
    private func look(_ exchange: Exchange, _ token: RefreshToken, of session: Session) {
        if exchange.head?.value("x-world") != nil || exchange.status == 200 {
            token.confirmedUse = token.confirmedUse ?? machine.now
        }
        guard let next = Self.value(Self.name, exchange), next != token.text else { return }
        if let known = token.successor, known != next, !session.isUnsure, !simulation.mayForget(session) {
            simulation.ledger.violate(.refresh, "one cookie of session \(session.id) was replaced by two")
        }
        token.successor = next
        if session.refreshTokens.last === token { session.refreshTokens.append(RefreshToken(next)) }
    }

    func use(_ session: Session, _ token: RefreshToken, _ next: @escaping (Exchange?) -> Void) {
        client.request(
            "GET", "/me/", .session(session), needsProof: true, fields: [present(token)]
        ) { [self] exchange in
            if let exchange { look(exchange, token, of: session) }
            next(exchange)
        }
    }

    /// Opens a response that goes on for a while, and goes on with other things.
    private func watch(_ session: Session, _ token: RefreshToken, _ next: @escaping (Exchange?) -> Void) {
        let gateways = simulation.gateways
        client.lastPort += 1
        let connection = ClientConnection(
            simulation, gateways[client.random.below(gateways.count)],
            from: Address(200 + client.index % 50, client.lastPort))
        client.pinned = connection
        client.request("GET", "/sse/", .session(session), needsProof: true, fields: [present(token)]) {
            [self] exchange in
            if let exchange { look(exchange, token, of: session) }
            connection.close()
        }
        client.pinned = nil
        let time = Int64(client.random.within(1000...40_000)) * 1_000_000
        machine.after(min(time, simulation.longest)) { connection.close() }
        next(nil)
    }

    /// Uses the token before: within the grace period it works, after it the session ends.
    private func reuse(_ session: Session, _ next: @escaping (Exchange?) -> Void) {
        guard session.refreshTokens.count > 1, !session.isUnsure else { return next(nil) }
        let (old, new) = (
            session.refreshTokens[session.refreshTokens.count - 2],
            session.refreshTokens[session.refreshTokens.count - 1]
        )
        let plan = simulation.plan
        let asked = machine.now
        // Until the new one was presented it is no replacement.
        let end = (new.firstUse ?? .max / 2) + plan.graceTime - plan.skew
        let late = (new.confirmedUse ?? .max / 2) + plan.graceTime + plan.skew + plan.cacheTime + 5_000_000_000
        let isLate = asked > late
        session.endAsked = session.endAsked ?? asked
        client.request("GET", "/me/", .session(session), needsProof: true, fields: [present(old)]) {
            [self] exchange in
            defer { next(exchange) }
            guard let exchange else { return }
            look(exchange, old, of: session)
            let isTimely = machine.now < end && !simulation.mayForget(session) && session.endAsked == asked
            switch exchange.status {
            case 401 where isTimely:
                simulation.ledger.violate(
                    .outage, "a cookie that was replaced a moment ago got 401 in request \(exchange.number)")
            case 401 where isLate: session.end = session.end ?? (machine.now, exchange.gateway, exchange.incarnation)
            case 200 where isLate && session.end == nil && !session.isUnsure:
                simulation.ledger.violate(
                    .refresh, "a cookie passed \((asked - late) / 1_000_000) ms too late, in request \(exchange.number)"
                )
            default: if !isTimely { session.isUnsure = true }
            }
            if isTimely, session.end == nil { session.endAsked = nil }
        }
    }

    /// A request of another site's page.
    private func cross(_ session: Session, _ token: RefreshToken, _ next: @escaping (Exchange?) -> Void) {
        let site = client.random.pick([
            "Sec-Fetch-Site: cross-site", "Origin: https://evil.example", "Sec-Fetch-Site: same-site", "Origin: null",
        ])
        client.request(
            "POST", "/me/", .wrong, needsProof: true, fields: [present(token), site], body: Array("a=b".utf8), next)
    }

    private func signOut(_ session: Session, _ token: RefreshToken, _ next: @escaping (Exchange?) -> Void) {
        session.endAsked = machine.now
        client.request(
            "POST", "/auth/sign-out", .session(session),
            fields: [
                present(token), "Origin: \(Self.origin)", "Content-Type: application/x-www-form-urlencoded",
            ], body: []
        ) { [self] exchange in
            if let exchange, exchange.status == 303 {
                session.end = session.end ?? (machine.now, exchange.gateway, exchange.incarnation)
            } else {
                session.isUnsure = true
            }
            next(exchange)
        }
    }
}
