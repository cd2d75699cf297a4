import WorldMachine

/// WeChat, as far as gateways call it: it exchanges codes for users.
final class WeChat: Service {
    static let appID = "wx0000000000000001"
    static let webID = "wx0000000000000002"
    static let secret = "0123456789abcdef0123456789abcdef"

    /// A code that was issued to a client.
    final class Code {
        let text: String
        let user: String
        let client: Int
        let issuedAt: Int64
        /// When it was first sent here.
        var sentAt: Int64?
        /// The session that it began, and when.
        var session: (id: String, time: Int64)?

        init(_ text: String, of user: String, for client: Int, at time: Int64) {
            self.text = text
            self.user = user
            self.client = client
            issuedAt = time
        }
    }

    private(set) var codes: [Code] = []

    init(_ simulation: Simulation) {
        super.init(simulation, at: Address(host: 0x7f00_0001, port: 9102), part: "wechat")
    }

    func issue(for user: String, client: Int) -> Code {
        let code = Code("code\(codes.count)abcdefghijklmnopqrst", of: user, for: client, at: simulation.machine.now)
        codes.append(code)
        return code
    }

    override func respond(_ head: MessageHead, _ body: [UInt8]) -> ServiceResponse {
        let parts = head.target.split(separator: "?", maxSplits: 1)
        let query = Form(Array((parts.count > 1 ? parts[1] : "").utf8))
        switch parts.first {
        case "/sns/oauth2/access_token":
            guard let app = query["appid"], app == Self.appID || app == Self.webID, query["secret"] == Self.secret
            else { return Self.error(40125) }
            guard let code = codes.first(where: { $0.text == query["code"] }) else { return Self.error(40029) }
            if let first = code.sentAt {
                if !simulation.mayForgetUse(since: first) {
                    simulation.ledger.violate(.singleUse, "\(code.text.prefix(8)) was sent to WeChat twice")
                }
                return Self.error(40163)
            }
            code.sentAt = simulation.machine.now
            return ServiceResponse(
                json: "{\"access_token\":\"of-\(code.user)\",\"expires_in\":7200,\"refresh_token\":\"refresh\","
                    + "\"openid\":\"\(Self.openID(code.user))\",\"scope\":\"snsapi_userinfo\","
                    + "\"unionid\":\"\(Self.unionID(code.user))\"}")
        case "/sns/userinfo":
            guard let user = query["access_token"]?.dropFirst(3), query["openid"] == Self.openID(String(user)) else {
                return Self.error(40003)
            }
            return ServiceResponse(
                json: "{\"openid\":\"\(Self.openID(String(user)))\",\"nickname\":\"Wei\",\"sex\":0,"
                    + "\"unionid\":\"\(Self.unionID(String(user)))\",\"headimgurl\":\"\",\"privilege\":[]}")
        default: return ServiceResponse("404 Not Found", json: "{}")
        }
    }

    static func unionID(_ user: String) -> String { "o6_bmasdasdsad6_2sgVt7hMZOP\(user)" }
    private static func openID(_ user: String) -> String { "oGZUI0egBJY1zhBYw2KhdUfwVJJ\(user)" }
    private static func error(_ code: Int) -> ServiceResponse {
        ServiceResponse(json: "{\"errcode\":\(code),\"errmsg\":\"no\"}")
    }
}

/// What a client does as a user of WeChat's.
final class WeChatUser {
    private unowned let client: Client
    private let user: String

    init(_ client: Client) {
        self.client = client
        user = "u\(client.user)"
    }

    private var simulation: Simulation { client.simulation }
    private var identity: String { "wechat:u:\(WeChat.unionID(user))" }

    func act(_ next: @escaping (Exchange?) -> Void) {
        switch client.random.below(10) {
        case 0..<6: login(next)
        case 6..<9: replay(next)
        default: post("code=0123456789abcdefghij", .wrong) { next($0) }
        }
    }

    private func post(_ code: String, _ proof: Proof, _ done: @escaping (Exchange?) -> Void) {
        client.request(
            "POST", "/auth/login/wechat", proof, fields: ["Content-Type: application/x-www-form-urlencoded"],
            body: Array("app=ios&\(code)".utf8), isSafe: true, done)
    }

    func login(_ next: @escaping (Exchange?) -> Void) {
        login(simulation.weChat.issue(for: user, client: client.index), repeating: nil, next)
    }

    private func login(_ code: WeChat.Code, repeating first: Int64?, _ next: @escaping (Exchange?) -> Void) {
        simulation.ledger.accounts.sends(identity)
        post("code=\(code.text)", .direct(subject: identity)) { [self] exchange in
            guard let exchange else { return next(nil) }
            if exchange.status == 200, exchange.isComplete {
                began(code, exchange)
                client.begin(exchange, as: identity, askedAt: first)
            } else if exchange.status == 401, first == nil,
                !simulation.ledger.accounts.mayOvertake(identity, since: exchange.sentAt)
            {
                simulation.ledger.violate(
                    .outage,
                    "a new code got 401 in request \(exchange.number) "
                        + String(decoding: exchange.responseBody, as: UTF8.self))
            } else if exchange.status == 0, first == nil, client.random.chance(700) {
                // The response is lost: the same again.
                let time = Int64(client.random.within(0...6000)) * 1_000_000
                return simulation.machine.after(time) { [self] in login(code, repeating: exchange.sentAt, next) }
            }
            next(exchange)
        }
    }

    /// A code begins one session.
    private func began(_ code: WeChat.Code, _ exchange: Exchange) {
        guard let tokens = Tokens(exchange.responseBody) else { return }
        guard let first = code.session else {
            code.session = (tokens.session, simulation.machine.now)
            return
        }
        guard first.id != tokens.session, !simulation.mayForgetUse(since: code.issuedAt) else { return }
        simulation.ledger.violate(
            .singleUse,
            "\(code.text.prefix(8)) began session \(first.id), and \(tokens.session) in request "
                + "\(exchange.number)")
    }

    /// Posts another client's code, or an old one.
    private func replay(_ next: @escaping (Exchange?) -> Void) {
        let now = simulation.machine.now
        let spent = simulation.weChat.codes.last {
            $0.session != nil && ($0.client % 50 != client.index % 50 || now - $0.issuedAt > 25_000_000_000)
        }
        guard let spent else { return next(nil) }
        post("code=\(spent.text)", .wrong) { [self] exchange in
            if let exchange, exchange.status == 200, exchange.isComplete { began(spent, exchange) }
            next(exchange)
        }
    }
}
