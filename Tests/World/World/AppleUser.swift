import MartletJSON
import WorldMachine

/// What a client does as a user of Apple's: its tokens prove who it is by themselves, and begin sessions.
final class AppleUser {
    unowned let client: Client
    /// At Apple.
    let subject: String

    init(_ client: Client) {
        self.client = client
        subject = "00100\(client.user).0123456789abcdef.0001"
    }

    var simulation: Simulation { client.simulation }
    var issuer: Issuer { simulation.issuer }
    var identity: String { "apple:\(subject)" }

    /// Presents an identity token as it is.
    func present(_ next: @escaping (Exchange?) -> Void) {
        let isGood = client.random.chance(700)
        let kind = isGood ? .good : client.random.pick(AppleToken.Kind.allCases.filter { $0 != .good })
        guard let token = issuer.token(of: subject, kind) else { return next(nil) }
        client.request(
            "GET", "/id/", isGood ? .direct(subject: identity) : .wrong, needsProof: true,
            fields: ["Authorization: Bearer \(token.text)"]
        ) { [self] exchange in
            if isGood { check(exchange, token) }
            next(exchange)
        }
    }

    /// A good token is never rejected, whatever has become of the issuer.
    private func check(_ exchange: Exchange?, _ token: AppleToken) {
        guard let exchange, exchange.status == 401, issuer.isKnown(token.keyID),
            // A clock that is a minute late takes it for one of the future.
            simulation.plan.skew < 50_000_000_000,
            !simulation.ledger.accounts.hasLeft(identity, since: token.madeAt),
            !simulation.ledger.accounts.mayEndLate(
                simulation.ledger.accounts.account(of: identity), since: simulation.machine.now)
        else { return }
        simulation.ledger.violate(
            .outage, "a good identity token with \(token.keyID) got 401 in request \(exchange.number)")
    }

    // MARK: Logins

    /// Logs in: with a nonce of the gateway's, or without one.
    func login(_ next: @escaping (Exchange?) -> Void) {
        if simulation.plan.callers.requiresNonce ? !client.random.chance(100) : client.random.chance(500) {
            return client.request("POST", "/auth/nonce", .nothing) { [self] exchange in
                guard let exchange, exchange.status == 200, exchange.isComplete, let nonce = Self.nonce(exchange),
                    let token = issuer.token(of: subject, nonce: nonce)
                else { return next(exchange) }
                login(login(with: token), repeating: nil, next)
            }
        }
        guard let token = issuer.token(of: subject) else { return next(nil) }
        login(login(with: token), repeating: nil, next)
    }

    /// A login, perhaps with a code.
    private func login(with token: AppleToken) -> AppleLogin {
        let login = AppleLogin(token, by: client.index)
        if simulation.plan.callers.hasAccounts, client.random.chance(600) {
            login.code = issuer.grants.issueCode(login)
        }
        return login
    }

    private static func nonce(_ exchange: Exchange) -> String? {
        JSONValue.parsed(exchange.responseBody)?.object?["nonce"]?.string
    }

    private func login(_ login: AppleLogin, repeating first: Int64?, _ next: @escaping (Exchange?) -> Void) {
        simulation.ledger.accounts.sends(identity)
        post(login) { [self] exchange in
            guard let exchange else { return next(nil) }
            if exchange.status == 200, exchange.isComplete {
                simulation.ledger.logins.used(login, exchange)
                if let tokens = Tokens(exchange.responseBody) {
                    issuer.grants.acknowledge(login, account: tokens.subject)
                }
                client.begin(exchange, as: identity, askedAt: first)
            } else if exchange.status == 401 || exchange.status == 400, first == nil {
                reject(login, exchange)
            } else if exchange.status == 0, first == nil, login.token.nonce != nil, client.random.chance(700) {
                // The response is lost: the same again.
                let time = Int64(client.random.within(0...6000)) * 1_000_000
                return simulation.machine.after(time) { [self] in self.login(login, repeating: exchange.sentAt, next) }
            }
            next(exchange)
        }
    }

    /// A first login of a good token is never rejected.
    private func reject(_ login: AppleLogin, _ exchange: Exchange) {
        if simulation.plan.callers.requiresNonce, login.token.nonce == nil { return }
        // With the store's data the key of nonces is lost; instances compare theirs every five seconds.
        if login.token.nonce != nil, simulation.mayForgetUse(since: login.madeAt - 6_000_000_000) { return }
        check(exchange, login.token)
    }

    private func post(_ login: AppleLogin, _ done: @escaping (Exchange?) -> Void) {
        client.request(
            "POST", "/auth/login/apple", .direct(subject: identity), fields: ["Content-Type: application/json"],
            body: login.body(of: simulation), isSafe: true, done)
    }

    /// Posts another client's login, with a nonce that was used.
    func replay(_ next: @escaping (Exchange?) -> Void) {
        guard let login = simulation.ledger.logins.spent(by: client.index, at: simulation.machine.now) else {
            return next(nil)
        }
        client.request(
            "POST", "/auth/login/apple", .wrong, fields: ["Content-Type: application/json"],
            body: login.body(of: simulation), isSafe: true
        ) { [self] exchange in
            if let exchange, exchange.status == 200, exchange.isComplete {
                simulation.ledger.logins.used(login, exchange)
            }
            next(exchange)
        }
    }

    /// Logs in with a token that proves nothing.
    func loginWrongly(_ next: @escaping (Exchange?) -> Void) {
        let kind = client.random.pick(AppleToken.Kind.allCases.filter { $0 != .good })
        guard let token = issuer.token(of: subject, kind) else { return next(nil) }
        client.request(
            "POST", "/auth/login/apple", .wrong, fields: ["Content-Type: application/json"],
            body: AppleLogin(token, by: client.index).body(of: simulation), isSafe: true
        ) { [self] exchange in
            if let exchange, exchange.status == 200 {
                simulation.ledger.violate(.identity, "a login with a token that is \(kind.rawValue) succeeded")
            }
            next(exchange)
        }
    }

    func act(_ next: @escaping (Exchange?) -> Void) {
        if simulation.plan.callers.hasAccounts, client.random.chance(25) { return withdraw(next) }
        switch client.random.below(20) {
        case 0..<9: present(next)
        case 9..<15: login(next)
        case 15..<18: replay(next)
        default: loginWrongly(next)
        }
    }
}

/// A login with an identity token.
final class AppleLogin {
    let token: AppleToken
    let client: Int
    let madeAt: Int64
    var code: String?
    /// The session that it began, when, and with which processes.
    var session: (id: String, time: Int64, incarnations: Int)?

    init(_ token: AppleToken, by client: Int) {
        self.token = token
        self.client = client
        madeAt = token.madeAt
    }

    func body(of simulation: Simulation) -> [UInt8] {
        var body: JSONObject = ["identity_token": .string(token.text)]
        if let nonce = token.nonce { body["nonce"] = .string(nonce) }
        if let code { body["authorization_code"] = .string(code) }
        return JSON.write(JSONValue.object(body))
    }
}

/// What can be used once, and what it was used for.
final class LoginBook {
    unowned let simulation: Simulation
    private var once: [AppleLogin] = []

    init(_ simulation: Simulation) { self.simulation = simulation }

    /// A login has succeeded: its nonce begins one session.
    func used(_ login: AppleLogin, _ exchange: Exchange) {
        guard let once = login.token.nonce ?? login.code, let tokens = Tokens(exchange.responseBody) else { return }
        guard let first = login.session else {
            login.session = (tokens.session, simulation.machine.now, simulation.incarnations)
            self.once.append(login)
            return
        }
        guard first.id != tokens.session, !simulation.mayForgetUse(since: login.madeAt) else { return }
        simulation.ledger.violate(
            .singleUse,
            "the nonce or code \(once.prefix(12)) began session \(first.id), and session \(tokens.session) in request "
                + "\(exchange.number)")
    }

    /// A login of another client, or an old one.
    func spent(by client: Int, at now: Int64) -> AppleLogin? {
        once.last { $0.client % 50 != client % 50 || now - ($0.session?.time ?? now) > 15_000_000_000 }
    }
}

extension JSONValue {
    static func parsed(_ bytes: [UInt8]) -> JSONValue? {
        try? JSON.parse(bytes, limits: JSONLimits(maximumDepth: 8, maximumBytes: 100_000))
    }
}
