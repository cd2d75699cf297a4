import MartletJSON
import WorldMachine

/// A user's app: it logs in, asks, refreshes, logs out, and is at times what apps and their networks are at times.
final class Client {
    unowned let simulation: Simulation
    let index: Int
    var random: SeededRandom
    private var connections: [Int: any Carrier] = [:]
    /// The connection of all requests for the moment.
    var pinned: (any Carrier)?
    private var left: Int
    var lastPort = 1024
    let user: Int
    /// What it does with a browser.
    private(set) lazy var browser = simulation.plan.callers.hasBrowsers ? BrowserUser(self) : nil
    /// What it does as a user of WeChat's.
    private(set) lazy var weChat = simulation.plan.callers.hasWeChat ? WeChatUser(self) : nil
    /// What it does as a user of Apple's.
    private(set) lazy var apple = simulation.plan.callers.hasApple ? AppleUser(self) : nil
    /// What it does if it is the one that tries what only some configurations have.
    private(set) lazy var explorer = simulation.plan.isExplorer(index) ? Explorer(self) : nil
    var session: Session?
    /// Refresh tokens that were replaced, and when they will be too old to be repeated.
    var oldTokens: [(session: Session, token: RefreshToken)] = []
    private(set) var isDone = false

    init(_ simulation: Simulation, _ index: Int, requests: Int) {
        self.simulation = simulation
        self.index = index
        random = SeededRandom(seed: simulation.plan.seed &+ UInt64(index) &* 7919, part: "client")
        left = requests
        user = random.below(simulation.plan.users)
    }

    var subject: String { "password:u\(user)" }

    func start() { simulation.machine.after(Int64(random.within(0...3000)) * 1_000_000) { [self] in step() } }

    private func step() {
        guard left > 0 else {
            isDone = true
            for connection in connections.values.sorted(by: { $0.gateway.index < $1.gateway.index }) {
                connection.close()
            }
            return
        }
        left -= 1
        let think = random.chance(700) ? random.within(1...400) : random.within(400...5000)
        let next: (Exchange?) -> Void = { [weak self] _ in
            guard let self else { return }
            simulation.machine.after(Int64(think) * 1_000_000) { self.step() }
        }
        act(next)
    }

    /// A connection to one of the gateways.
    func connection() -> (any Carrier)? {
        if let pinned, pinned.isUsable { return pinned }
        let gateways = simulation.gateways
        let gateway = gateways[random.below(gateways.count)]
        if let open = connections[gateway.index], open.isUsable, !random.chance(50) { return open }
        connections[gateway.index]?.close()
        lastPort += 1
        let connection = carrier(to: gateway, from: Address(200 + index % 50, lastPort))
        connections[gateway.index] = connection
        return connection
    }

    // MARK: What it does

    private func act(_ next: @escaping (Exchange?) -> Void) {
        if let explorer { return explorer.act(next) }
        if random.chance(60) { return special(next) }
        if let browser, random.chance(250) { return browser.act(next) }
        if let weChat, random.chance(120) { return weChat.act(next) }
        if let apple, random.chance(300) { return apple.act(next) }
        guard let session, session.endAsked == nil, !isOver(session) else {
            if random.chance(600) { return login(next) }
            if random.chance(150) { return malformed(next) }
            if random.chance(100) { return flood(next) }
            return random.chance(700) ? visit("/pub/", next) : wrong(next)
        }
        switch random.below(100) {
        case 0..<40: use(session, next)
        case 40..<55: visit(random.pick(["/pub/", "/pub/", "/pub/", "/gone/"]), next)
        case 55..<60: visit("/opt/", next)
        case 60..<63: long(session, next)
        case 63..<75: refresh(session, next)
        case 75..<79: reuse(next)
        case 79..<85:
            if random.chance(150) { return endAll(session, next) }
            if simulation.plan.callers.hasAccounts, random.chance(session.identity.hasPrefix("apple") ? 700 : 300) {
                return delete(session, next)
            }
            end(session, next)
        case 85..<89: useEnded(next)
        case 89..<92: wrong(next)
        case 92..<94: several(next)
        case 94, 95: flood(next)
        case 96..<98: malformed(next)
        default: list(session, next)
        }
    }

    private func isOver(_ session: Session) -> Bool {
        session.isUnsure && random.chance(300)
    }

    /// Sends a request with a body or without one, in whatever pieces.
    func request(
        _ method: String, _ path: String, _ proof: Proof, needsProof: Bool = false, fields: [String] = [],
        body: [UInt8]? = nil,
        isSafe: Bool = false, timelyUntil: Int64 = .max, _ done: @escaping (Exchange?) -> Void
    ) {
        guard let connection = connection() else { return done(nil) }
        let exchange = simulation.ledger.open(
            gateway: connection.gateway, method: method, path: path, proof: proof, needsProof: needsProof)
        var fields = fields
        if random.chance(150) { fields += forgedFields() }
        var parts: [[UInt8]] = []
        if let body {
            exchange.body = body
            parts = random.chance(400) ? chunked(body, &fields) : sized(body, &fields)
        }
        let pauses = random.chance(100) ? (0...parts.count).map { _ in Int64(random.within(0...900)) * 1_000_000 } : []
        let bytes = parts.reduce(0) { $0 + $1.count } + 60
        let cut = !isSafe && random.chance(simulation.plan.rudeness) ? random.below(bytes) : nil
        exchange.done = { exchange in done(exchange) }
        exchange.sent = fields
        exchange.timelyUntil = timelyUntil
        if random.chance(20) { connection.pause(for: Int64(random.within(10...3000)) * 1_000_000) }
        connection.send(exchange, fields: fields, parts: parts, pauses: pauses, cut: cut)
    }

    private func sized(_ body: [UInt8], _ fields: inout [String]) -> [[UInt8]] {
        fields.append("Content-Length: \(body.count)")
        var parts: [[UInt8]] = []
        var rest = body[...]
        while !rest.isEmpty {
            let size = min(rest.count, 1 + random.below(20_000))
            parts.append(Array(rest.prefix(size)))
            rest = rest.dropFirst(size)
        }
        return parts
    }

    private func chunked(_ body: [UInt8], _ fields: inout [String]) -> [[UInt8]] {
        fields.append("Transfer-Encoding: chunked")
        var spelling = Spelling(SeededRandom(seed: random.next()))
        var parts: [[UInt8]] = []
        var rest = body[...]
        while !rest.isEmpty {
            let size = min(rest.count, 1 + random.below(9000))
            parts.append(Array(spelling.chunk(size).utf8) + rest.prefix(size) + [13, 10])
            rest = rest.dropFirst(size)
        }
        let trailer = random.chance(250) ? "X-User-Id: forged\r\nX-Sum: 1\r\n" : ""
        if !trailer.isEmpty, random.chance(700) { fields.append("Trailer: X-User-Id, X-Sum") }
        return parts + [Array("0\r\n\(trailer)\r\n".utf8)]
    }

    /// Fields that only the gateway may make, in whatever spelling.
    private func forgedFields() -> [String] {
        let name = random.pick(["X-User-Id", "x-user-id", "X_User_Id", "X-USER-ID", "X.User.Id", "x-user_id"])
        var fields = ["\(name): forged"]
        if random.chance(300) { fields.append("Connection: X-User-Id") }
        if random.chance(300) { fields.append("X-User-Id: forged-too") }
        if random.chance(300) { fields.append("X-Real-IP: forged") }
        return fields
    }

    func visit(_ path: String, _ next: @escaping (Exchange?) -> Void) {
        if random.chance(500) {
            return request(random.pick(["GET", "GET", "HEAD", "DELETE", "POST"]), path, .nothing, next)
        }
        let size = random.chance(150) ? random.within(10_000...150_000) : random.below(3000)
        var body = [UInt8](repeating: 0, count: size)
        for index in body.indices { body[index] = UInt8(truncatingIfNeeded: index &* 31 &+ size) }
        request(random.pick(["POST", "PUT"]), path, .nothing, body: body, next)
    }

    func use(_ session: Session, _ next: @escaping (Exchange?) -> Void) {
        let token = session.access[session.access.count - 1].token
        let path = random.pick(["/me/", "/me/", "/opt/", "/left/", "/right/"])
        request(
            "GET", path, .session(session), needsProof: path != "/opt/", fields: ["Authorization: Bearer \(token)"],
            next
        )
    }

    /// Something that proves nothing.
    func wrong(_ next: @escaping (Exchange?) -> Void) {
        var fields: [String] = []
        switch random.below(5) {
        case 0: break
        case 1: fields = ["Authorization: Bearer mat_\(String(repeating: "A", count: 75))"]
        case 2: fields = ["Authorization: Basic dTA6d3Jvbmc="]
        case 3:
            guard let token = simulation.ledger.sessions.last?.access.last?.token else { break }
            fields = ["Authorization: Bearer \(token.dropLast(2))\(token.hasSuffix("AA") ? "BA" : "AA")"]
        default: fields = ["Authorization: Bearer a.b.c"]
        }
        request("GET", "/me/", .wrong, needsProof: true, fields: fields, next)
    }

    private func list(_ session: Session, _ next: @escaping (Exchange?) -> Void) {
        let token = session.access[session.access.count - 1].token
        request("GET", "/auth/sessions", .session(session), fields: ["Authorization: Bearer \(token)"], next)
    }

    private func useEnded(_ next: @escaping (Exchange?) -> Void) {
        let ended = simulation.ledger.sessions.filter { $0.end != nil }
        guard !ended.isEmpty else { return visit("/pub/", next) }
        let session = random.pick(ended.suffix(4).map { $0 })
        use(session, next)
    }
}
