import MartletJSON
import WorldMachine

/// What must hold; each has a checker, and mutants that it catches.
enum Invariant: String, CaseIterable, Sendable {
    case identity
    case routing
    case clientHeader = "client-header"
    case oneResponse = "one-response"
    case oneLine = "one-line"
    case body
    case revocation
    case refresh
    case deletion
    case singleUse = "single-use"
    case outage
    case bounds
    case served
    case crash
}

/// A guarantee that was broken.
struct Violation: Error, Sendable {
    let invariant: Invariant
    let what: String
}

/// A session as its client knows it.
final class Session {
    let subject: String
    /// With its provider.
    var identity = ""
    /// When its login was sent.
    let askedAt: Int64
    let id: String
    let origin: Int
    let incarnation: Int
    let startedAt: Int64
    /// Access tokens, the newest last, with the times at which they expire at the earliest and at the latest.
    var access: [(token: String, from: Int64, until: Int64)]
    /// Refresh tokens, the newest last.
    var refreshTokens: [RefreshToken]
    /// When a client first asked for its end.
    var endAsked: Int64?
    /// When the end was acknowledged, and by which gateway.
    var end: (time: Int64, gateway: Int, incarnation: Int)?
    /// Whether what happened to it cannot be known, so that both outcomes are right.
    var isUnsure = false
    /// Whether a refresh is under way, or its response was lost.
    var isRefreshing = false

    init(
        subject: String, id: String, origin: Exchange, at time: Int64,
        access: (token: String, from: Int64, until: Int64), refresh: String
    ) {
        self.subject = subject
        self.id = id
        self.origin = origin.gateway
        incarnation = origin.incarnation
        askedAt = origin.sentAt
        startedAt = time
        self.access = [access]
        refreshTokens = [RefreshToken(refresh)]
    }

    /// It may end from a time on, in the middle of a refresh, too.
    func mayEnd(from time: Int64) {
        endAsked = endAsked ?? time
        if isRefreshing { isUnsure = true }
    }

    convenience init(
        subject: String, origin: Exchange, askedAt first: Int64? = nil, at time: Int64, _ tokens: Tokens
    ) {
        self.init(
            subject: subject, id: tokens.session, origin: origin, at: time,
            access: tokens.valid(since: first ?? origin.sentAt, until: time), refresh: tokens.refresh)
    }
}

/// A refresh token and what was got for it.
final class RefreshToken {
    let text: String
    /// When it was first sent.
    var firstUse: Int64?
    /// When a request with it had succeeded; of cookies.
    var confirmedUse: Int64?
    /// The refresh token that it was exchanged for.
    var successor: String?

    init(_ text: String) { self.text = text }
}

/// What a request proves.
enum Proof {
    case nothing
    case session(Session)
    /// A proof of its own, such as an issuer's token.
    case direct(subject: String)
    /// A credential of someone who is no account: upstreams see this subject.
    case program(subject: String)
    /// Something that proves nothing, and must be rejected.
    case wrong
}

/// A request that a client made, and what became of it.
final class Exchange {
    enum State { case sent, responded, closed }

    let number: Int
    let gateway: Int
    let incarnation: Int
    /// That of the gateway when the response had arrived.
    var lastIncarnation = 0
    let method: String
    let path: String
    let proof: Proof
    let needsProof: Bool
    let sentAt: Int64
    /// What it carries, and whether the client sent all of it.
    var body: [UInt8] = []
    var isWhole = true
    /// Whether its head must be rejected, or it stands behind one that must be.
    var isMalformed = false
    var state = State.sent
    /// Until when its access token is valid at least.
    private(set) var validUntil = Int64.max
    /// Until when it is a repetition that gets the same; later it ends its session.
    var timelyUntil = Int64.max
    /// The fields that it was sent with.
    var sent: [String] = []
    /// Whether a proof that was wrong when it was sent is one still.
    var isStillWrong: () -> Bool = { true }
    /// Until when a long response goes on at least, unless someone ends it.
    var lastsUntil: Int64 = 0
    /// When its credential expires, at the latest.
    var expires = Int64.max / 2
    /// What the two sides of a tunnel or a long response send.
    let up = Flow()
    var down = Flow()
    /// The head of its response, and when it came.
    var headAt: Int64 = 0
    var head: MessageHead?
    var responseBody: [UInt8] = []
    var trailer: [(name: String, value: String)] = []
    /// Finds what is wrong with the head that an upstream has got.
    var inspect: ((MessageHead) -> String?)?
    var isComplete = false
    var lines = 0
    var sightings = 0
    /// When an upstream saw it the last time, and when it had sent its response.
    var seenAt: Int64 = 0
    var respondedAt: Int64 = 0
    /// When an upstream had sent all of its response.
    var wholeAt: Int64 = 0
    /// When something of it last came to its client, or the client began to read again.
    var progressAt: Int64 = 0
    /// When it ended.
    var finishedAt: Int64 = 0
    /// When its head is at the gateway, if that is known.
    var arrivesAt: Int64?
    /// Whether the client may leave before the end.
    var mayLeave = false
    /// Whether its upstream responds before it has the body.
    var isEarly: Bool { path.hasPrefix("/early/") }
    /// Ends when the exchange does.
    var done: (Exchange) -> Void = { _ in }

    init(
        _ number: Int, gateway: Int, incarnation: Int, method: String, path: String, proof: Proof, needsProof: Bool,
        at time: Int64
    ) {
        self.number = number
        self.gateway = gateway
        self.incarnation = incarnation
        self.method = method
        self.path = path
        self.proof = proof
        self.needsProof = needsProof
        sentAt = time
        if case .session(let session) = proof, path != "/auth/refresh" { validUntil = session.access.last?.from ?? 0 }
    }

    var status: Int { head?.status ?? 0 }

    /// Whether its body has these bytes there.
    func sends(_ bytes: [UInt8], at offset: Int) -> Bool {
        offset + bytes.count <= body.count
            && body.withUnsafeBytes { all in bytes.withUnsafeBytes { all[offset...].prefix($0.count).elementsEqual($0) }
            }
    }

    var code: String { head?.value("x-world-code") ?? "" }

    /// The code of an error response of the gateway.
    var problem: String? { JSONValue.parsed(responseBody)?.object?["code"]?.string }
}

/// All that was sent, seen and acknowledged in a world, and what follows from it.
final class Ledger {
    unowned let simulation: Simulation
    private(set) var exchanges: [Exchange] = []
    private(set) var violations: [Violation] = []
    var sessions: [Session] = []
    var responses: [Int: Int] = [:]
    let logins: LoginBook
    let accounts: AccountBook
    var endings: [Ending] = []
    /// Sessions whose end was acknowledged to who asked for it.
    var endedRightBefore: [Session] = []
    /// Whether lines of the access log may be missing: of gateways that were killed or could not write, by incarnation.
    var mayLoseLines: Set<Int> = []

    init(_ simulation: Simulation) {
        self.simulation = simulation
        logins = LoginBook(simulation)
        accounts = AccountBook(simulation)
    }

    /// Prints what happened to a session.
    private func tell(_ session: Session) {
        for exchange in exchanges {
            guard case .session(let other) = exchange.proof, other === session else { continue }
            simulation.machine.trace.note(
                "  request \(exchange.number) at \(exchange.sentAt) gateway \(exchange.gateway) \(exchange.method) \(exchange.path): \(exchange.state) \(exchange.status)"
                    + " \(String(decoding: exchange.body, as: UTF8.self))")
        }
    }

    func violate(_ invariant: Invariant, _ what: String) {
        violations.append(Violation(invariant: invariant, what: what))
        simulation.machine.trace.note("VIOLATION \(invariant.rawValue): \(what)")
        simulation.machine.fail("\(invariant.rawValue): \(what)")
    }

    func open(
        gateway: Gateway, method: String, path: String, proof: Proof, needsProof: Bool
    ) -> Exchange {
        let exchange = Exchange(
            exchanges.count, gateway: gateway.index, incarnation: gateway.incarnation, method: method,
            path: path.hasSuffix("/") ? path + "\(exchanges.count)" : path, proof: proof, needsProof: needsProof,
            at: simulation.machine.now)
        if case .session(let session) = proof { exchange.expires = session.access.last?.until ?? exchange.expires }
        exchanges.append(exchange)
        simulation.machine.trace.note(
            "request \(exchange.number) \(method) \(exchange.path) begins at gateway \(gateway.index): \(proof)")
        return exchange
    }

    /// The exchange of a path, which ends with its number.
    func exchange(ofPath path: String) -> Exchange? {
        let plain = path.split(separator: "?").first ?? ""
        guard let number = Int(plain.split(separator: "/").last ?? ""), exchanges.indices.contains(number) else {
            return nil
        }
        return exchanges[number]
    }

    /// The store has lost its last writes: what it acknowledged since a time may be so or not.
    func shake(since time: Int64) {
        for session in sessions {
            let lastUse = session.refreshTokens.compactMap(\.firstUse).max() ?? 0
            if max(session.startedAt, session.end?.time ?? 0, lastUse) > time { session.isUnsure = true }
        }
    }

    // MARK: What upstreams see

    /// An upstream has got the head of a request.
    func seen(_ head: MessageHead) -> Exchange? {
        guard let exchange = exchange(ofPath: head.target) else {
            violate(.oneResponse, "an upstream got \(head.start), which no client sent")
            return nil
        }
        exchange.sightings += 1
        exchange.seenAt = simulation.machine.now
        if exchange.sightings == 1 { simulation.limits.saw(exchange) }
        if exchange.sightings > 1, exchange.method == "POST" {
            violate(.singleUse, "upstreams got request \(exchange.number) \(exchange.path) twice")
        }
        if exchange.isMalformed {
            violate(.oneResponse, "an upstream got the malformed request \(exchange.number) \(exchange.sent)")
        }
        checkIdentity(head.fields, of: exchange)
        if let wrong = exchange.inspect?(head) {
            violate(.routing, "request \(exchange.number) \(exchange.sent) got to an upstream \(wrong)")
        }
        simulation.offers.saw(head, exchange)
        return exchange
    }

    /// What a route makes is made of the route that the request took, whatever the configuration was before.
    private func checkRoute(_ fields: [(name: String, value: String)], of exchange: Exchange) {
        let found = fields.filter { $0.name.lowercased() == "x-user-route" }.map(\.value)
        for name in ["left", "right"] where exchange.path.hasPrefix("/\(name)/") && found != [name] {
            violate(.identity, "request \(exchange.number) \(exchange.path) is of the route \(found)")
        }
    }

    func checkIdentity(_ fields: [(name: String, value: String)], of exchange: Exchange) {
        let ours = fields.filter { field in
            field.name.lowercased().filter { $0.isLetter || $0.isNumber }.hasPrefix("xuser")
        }
        checkRoute(ours, of: exchange)
        for field in fields where field.value.contains("forged") {
            return violate(.clientHeader, "an upstream got \(field.name): \(field.value) in request \(exchange.number)")
        }
        let subjects = ours.filter { $0.name.lowercased() == "x-user-id" }.map(\.value)
        guard subjects.count <= 1 else { return violate(.identity, "two identities in request \(exchange.number)") }
        guard let subject = subjects.first, !subject.isEmpty else {
            if exchange.needsProof { violate(.identity, "request \(exchange.number) passed without an identity") }
            return
        }
        switch exchange.proof {
        case .nothing, .wrong:
            guard exchange.isStillWrong() else { return }
            violate(.identity, "request \(exchange.number) \(exchange.sent) proved nothing, and was \(subject)")
        case .program(let proved):
            if proved != subject {
                violate(.identity, "request \(exchange.number) proved \(proved), and was \(subject)")
            }
        case .direct(let proved):
            if let wrong = accounts.observe(proved, as: subject, sentAt: exchange.sentAt) {
                violate(.identity, "in request \(exchange.number), \(wrong)")
            }
            if accounts.isGone(subject, at: exchange.sentAt) {
                violate(.deletion, "request \(exchange.number) was \(subject), which was deleted")
            }
        case .session(let session):
            if session.subject != subject {
                return violate(.identity, "request \(exchange.number) proved \(session.subject), and was \(subject)")
            }
            let late = exchange.sentAt - min(exchange.expires, .max / 4) - simulation.plan.skew
            if late > 2_000_000_000 {
                violate(
                    .identity, "request \(exchange.number) passed \(late / 1_000_000) ms after its token had expired")
            }
            checkEnded(session, exchange)
        }
    }

    /// No session works after its end was acknowledged: at this gateway immediately, elsewhere after a time.
    private func checkEnded(_ session: Session, _ exchange: Exchange) {
        guard let end = session.end, !session.isUnsure else { return }
        let isSame = end.gateway == exchange.gateway
        let grace = isSame ? 0 : simulation.plan.cacheTime + 1_000_000_000
        guard exchange.sentAt > end.time + grace, simulation.knows(since: end.time) else {
            return
        }
        tell(session)
        violate(
            .revocation,
            "request \(exchange.number) at gateway \(exchange.gateway) passed \((exchange.sentAt - end.time) / 1_000_000) ms after session \(session.id) "
                + "was ended at gateway \(end.gateway)")
    }

    // MARK: What clients see

    func finished(_ exchange: Exchange) {
        exchange.state = exchange.head == nil ? .closed : .responded
        exchange.lastIncarnation = simulation.incarnations
        exchange.finishedAt = simulation.machine.now
        if exchange.status == 504 || exchange.status == 200 && !exchange.isComplete { checkServed(exchange) }
        checkWaiting(exchange)
        responses[exchange.status, default: 0] += 1
        simulation.machine.trace.note(
            "request \(exchange.number) \(exchange.method) \(exchange.path) ends with \(exchange.status) \(exchange.isComplete)"
        )
        if case .session(let session) = exchange.proof, exchange.method != "GET", simulation.isShaken(exchange) {
            session.isUnsure = true
        }
        if exchange.status == 401 || exchange.status == 403 { checkRejection(exchange) }
        if exchange.status == 500, exchange.head?.value("x-world") == nil {
            violate(
                .crash, "request \(exchange.number) got 500 \(String(decoding: exchange.responseBody, as: UTF8.self))")
        }
        if exchange.isMalformed, ![0, 400, 408, 503].contains(exchange.status) {
            violate(
                .oneResponse, "the malformed request \(exchange.number) \(exchange.sent) got \(exchange.status)")
        }
        exchange.done(exchange)
    }

    /// An outage is never a rejection.
    private func checkRejection(_ exchange: Exchange) {
        guard case .session(let session) = exchange.proof, session.endAsked == nil, !session.isUnsure else { return }
        // The form of a proxy that knows no other status for an outage.
        if exchange.status == 403, exchange.path == "/auth/check", exchange.problem == "auth_unavailable" { return }
        guard !simulation.mayForget(session), !accounts.mayEndLate(session.subject, since: session.startedAt) else {
            return
        }
        // A gateway that has not heard of a failover may still ask the old master, which knows nothing newer.
        guard
            (simulation.redis.lastFailover ?? -2) < simulation.gateways[exchange.gateway - 1].masterChangedAt
                || simulation.redis.lastFailover == nil
        else { return }
        guard simulation.machine.now <= exchange.timelyUntil,
            exchange.validUntil > simulation.machine.now + simulation.plan.skew
        else { return }
        tell(session)
        violate(
            .outage,
            "request \(exchange.number) \(exchange.method) \(exchange.path) with a living session got \(exchange.status) "
                + String(decoding: exchange.responseBody, as: UTF8.self))
    }

    // MARK: Access lines

    /// Lines by the id of their request.
    private var lines: Set<String> = []

    func line(_ path: String, id: String) {
        if !lines.insert(id).inserted { violate(.oneLine, "request \(id) \(path) has two lines") }
        guard let exchange = exchange(ofPath: path) else { return }
        exchange.lines += 1
        if exchange.lines > 1 {
            violate(.oneLine, "request \(exchange.number) \(exchange.path) has \(exchange.lines) lines")
        }
    }

    /// After the end of all gateways.
    func checkLines() {
        for exchange in exchanges where exchange.state == .responded {
            guard let id = exchange.head?.value("x-request-id"), !lines.contains(id) else { continue }
            // A connection that is rejected when it is accepted has made no request.
            let isOverload =
                (exchange.method == "HEAD" || !exchange.isComplete) && exchange.status == 503
                || String(decoding: exchange.responseBody, as: UTF8.self).contains("problem:overloaded")
            let incarnations = exchange.incarnation...max(exchange.incarnation, exchange.lastIncarnation)
            guard !isOverload, mayLoseLines.allSatisfy({ !incarnations.contains($0) }) else { continue }
            violate(
                .oneLine,
                "request \(exchange.number) \(exchange.path) at \(exchange.sentAt) of \(exchange.incarnation) got \(exchange.status), and has no line: \(id) \(String(decoding: exchange.responseBody, as: UTF8.self))"
            )
            return
        }
    }
}
