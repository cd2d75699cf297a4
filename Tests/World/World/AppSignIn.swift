import WorldMachine

/// An app that has its user sign in at WeChat in a browser, and exchanges the code that comes back.
final class AppSignIn {
    static let redirect = "com.example.app:/cb"
    /// The pair of RFC 7636, appendix B.
    private static let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    private static let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"

    private let client: Client
    private let user: String

    init(_ client: Client) {
        self.client = client
        user = "u\(client.user)"
    }

    private var simulation: Simulation { client.simulation }
    private var identity: String { "wechat:u:\(WeChat.unionID(user))" }

    static func isPossible(_ simulation: Simulation) -> Bool {
        simulation.plan.callers.hasWeChat && simulation.plan.callers.hasBrowsers
    }

    func begin(_ next: @escaping (Exchange?) -> Void) {
        let query =
            "client=native&redirect=com.example.app%3A%2Fcb&code_challenge=\(Self.challenge)&code_challenge_method=S256"
            + "&state=abc"
        client.request(
            "GET", "/auth/start/wechat?\(query)", .nothing, fields: ["Sec-Fetch-Mode: navigate"], isSafe: true
        ) { [self] exchange in
            guard let exchange, exchange.status == 302, let location = exchange.head?.value("location"),
                let state = Form(Array((location.split(separator: "?").last ?? "").utf8))["state"],
                let cookie = exchange.head?.fields.last(where: { $0.name.lowercased() == "set-cookie" })?.value
            else { return next(exchange) }
            comeBack(String(state.prefix { $0 != "#" }), String(cookie.prefix { $0 != ";" }), next)
        }
    }

    /// The user has consented, and WeChat sends the browser back.
    private func comeBack(_ state: String, _ cookie: String, _ next: @escaping (Exchange?) -> Void) {
        let code = simulation.weChat.issue(for: user, client: client.index)
        simulation.ledger.accounts.sends(identity)
        client.request(
            "GET", "/auth/callback/wechat?code=\(code.text)&state=\(state)", .direct(subject: identity),
            fields: ["Cookie: \(cookie)", "Sec-Fetch-Mode: navigate"], isSafe: true
        ) { [self] exchange in
            guard let exchange, exchange.status == 302, let location = exchange.head?.value("location"),
                let code = Form(Array((location.split(separator: "?").last ?? "").utf8))["code"]
            else { return next(exchange) }
            let found = AppCode(code, of: identity)
            simulation.appCodes.append(found)
            let isBeforeFailover = simulation.hasReplicas && client.random.chance(600)
            if isBeforeFailover { simulation.redis.lag(5, for: 2_000_000_000) }
            redeem(found) { [self] exchange in
                guard let exchange, exchange.status == 200 else { return next(exchange) }
                if isBeforeFailover {
                    // A new master that has it again has it until the end of the world, where it is tried.
                    client.failOver()
                    return next(exchange)
                }
                // Another app has it, too.
                let time = Int64(client.random.within(0...2000)) * 1_000_000
                simulation.machine.after(time) { [self] in redeem(found, next) }
            }
        }
    }

    private func redeem(_ code: AppCode, _ next: @escaping (Exchange?) -> Void) {
        simulation.ledger.accounts.sends(identity)
        client.request(
            "POST", "/auth/token", .direct(subject: identity),
            fields: ["Content-Type: application/x-www-form-urlencoded"], body: code.body(Self.verifier), isSafe: true
        ) { [self] exchange in
            if let exchange, exchange.isComplete, exchange.status == 200 { simulation.redeemed(code, exchange) }
            next(exchange)
        }
    }
}

/// A code that a gateway has issued for an app.
final class AppCode {
    private let text: String
    let identity: String
    /// When it was exchanged for a session, and by which process.
    var use: (session: String, time: Int64, gateway: Int, incarnation: Int)?

    init(_ text: String, of identity: String) {
        self.text = text
        self.identity = identity
    }

    func body(_ verifier: String = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk") -> [UInt8] {
        Array("grant_type=authorization_code&code=\(text)&code_verifier=\(verifier)".utf8)
    }
}

extension Simulation {
    /// A code was exchanged for a session: once.
    func redeemed(_ code: AppCode, _ exchange: Exchange, isLate: Bool = false) {
        guard let tokens = Tokens(exchange.responseBody) else { return }
        guard let use = code.use else {
            code.use = (tokens.session, machine.now, exchange.gateway, exchange.incarnation)
            return
        }
        guard isLate ? hasRepeated(use.time, use.gateway, use.incarnation) : !mayForgetUse(since: use.time) else {
            return
        }
        ledger.violate(
            .singleUse,
            "the code of an app began session \(use.session), and \(tokens.session) in request \(exchange.number)")
    }
}
