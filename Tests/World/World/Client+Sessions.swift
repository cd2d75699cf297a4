import MartletJSON
import WorldMachine

extension Client {
    func login(_ next: @escaping (Exchange?) -> Void) {
        if let apple, random.chance(500) { return apple.login(next) }
        simulation.ledger.accounts.sends(subject)
        let body = Array("username=u\(user)&password=secret-0".utf8)
        request(
            "POST", "/auth/login/password", .direct(subject: subject),
            fields: ["Content-Type: application/x-www-form-urlencoded"], body: body, isSafe: true
        ) { [self] exchange in
            if let exchange, exchange.status == 200, exchange.isComplete { begin(exchange, as: subject) }
            if let exchange, exchange.status == 401,
                !simulation.ledger.accounts.mayOvertake(subject, since: exchange.sentAt)
            {
                simulation.ledger.violate(.outage, "the right password got 401 in request \(exchange.number)")
            }
            next(exchange)
        }
    }

    /// Begins a session with the tokens of a login.
    /// - Parameter first: when the login was sent before, whose response this may be; `nil` for a first one.
    func begin(_ exchange: Exchange, as identity: String, askedAt first: Int64? = nil) {
        guard let tokens = Tokens(exchange.responseBody) else {
            return simulation.ledger.violate(.oneResponse, "a login's response has no tokens")
        }
        let session = Session(
            subject: tokens.subject, origin: exchange, askedAt: first, at: simulation.machine.now, tokens)
        session.isUnsure = simulation.isShaken(exchange)
        session.identity = identity
        simulation.ledger.sessions.append(session)
        simulation.ledger.accounts.begun(session, exchange)
        self.session = session
    }

    /// Exchanges the refresh token; a lost response is asked for again.
    func refresh(_ session: Session, _ next: @escaping (Exchange?) -> Void) {
        guard !session.isRefreshing, let token = session.refreshTokens.last else { return next(nil) }
        session.isRefreshing = true
        refresh(session, token, attempts: 4, next)
    }

    private func refresh(
        _ session: Session, _ token: RefreshToken, attempts: Int, _ next: @escaping (Exchange?) -> Void
    ) {
        if token.firstUse == nil { token.firstUse = simulation.machine.now }
        send(session, token) { [self] exchange in
            guard let exchange else { return next(nil) }
            if exchange.status == 200, exchange.isComplete, let tokens = Tokens(exchange.responseBody) {
                session.isRefreshing = false
                accept(tokens, for: token, of: session, exchange)
                return next(exchange)
            }
            // After the grace period a second use ends the session, and so it should.
            if let first = token.firstUse,
                simulation.machine.now - first > simulation.plan.graceTime - simulation.plan.skew
            {
                session.isUnsure = true
            }
            guard exchange.status != 401, attempts > 1, session.endAsked == nil else {
                session.isRefreshing = false
                if exchange.status != 401 { session.isUnsure = true }
                return next(exchange)
            }
            simulation.machine.after(Int64(random.within(10...800)) * 1_000_000) { [self] in
                refresh(session, token, attempts: attempts - 1, next)
            }
        }
    }

    func send(_ session: Session, _ token: RefreshToken, _ done: @escaping (Exchange?) -> Void) {
        request(
            "POST", "/auth/refresh", .session(session), fields: ["Content-Type: application/x-www-form-urlencoded"],
            body: Array("grant_type=refresh_token&refresh_token=\(token.text)".utf8),
            timelyUntil: (token.firstUse ?? .max / 2) + simulation.plan.graceTime - simulation.plan.skew, done)
    }

    /// Refreshes twice, at the same time: both get the same pair.
    func refreshTwice(_ session: Session, _ next: @escaping (Exchange?) -> Void) {
        guard session.endAsked == nil, !session.isRefreshing, let token = session.refreshTokens.last,
            token.firstUse == nil
        else { return next(nil) }
        session.isRefreshing = true
        token.firstUse = simulation.machine.now
        var left = 2
        for _ in 0..<2 {
            send(session, token) { [self] exchange in
                if let exchange, exchange.status == 200, exchange.isComplete,
                    let tokens = Tokens(exchange.responseBody)
                {
                    accept(tokens, for: token, of: session, exchange)
                }
                left -= 1
                guard left == 0 else { return }
                session.isRefreshing = false
                let isLate =
                    simulation.machine.now - (token.firstUse ?? 0)
                    > simulation.plan.graceTime - simulation.plan.skew
                if token.successor == nil || isLate { session.isUnsure = true }
                next(exchange)
            }
        }
    }

    /// One living pair: whoever repeats a refresh gets the same.
    func accept(_ tokens: Tokens, for token: RefreshToken, of session: Session, _ exchange: Exchange) {
        if tokens.session != session.id || tokens.subject != session.subject {
            simulation.ledger.violate(.identity, "a refresh of session \(session.id) gave a token of \(tokens.session)")
        }
        if let known = token.successor, known != tokens.refresh, !session.isUnsure,
            !simulation.mayForgetUse(since: token.firstUse ?? 0)
        {
            return simulation.ledger.violate(
                .refresh, "one refresh token of session \(session.id) was exchanged for two pairs")
        }
        if let end = session.end, !session.isUnsure, exchange.sentAt > end.time {
            return simulation.ledger.violate(.revocation, "session \(session.id) was refreshed after its end")
        }
        token.successor = tokens.refresh
        session.access.append(tokens.valid(since: token.firstUse ?? exchange.sentAt, until: simulation.machine.now))
        if session.refreshTokens.last?.text != tokens.refresh {
            session.refreshTokens.append(RefreshToken(tokens.refresh))
        }
        oldTokens.append((session, token))
    }

    /// Uses a refresh token that was replaced: within the grace period it gets the same pair, after it the session ends.
    func reuse(_ next: @escaping (Exchange?) -> Void) {
        guard let (session, token) = oldTokens.popLast(), session.endAsked == nil, !session.isUnsure,
            !session.isRefreshing,
            let first = token.firstUse, let successor = token.successor
        else { return next(nil) }
        let age = simulation.machine.now - first
        session.isRefreshing = true
        // The pair that replaced it may have been used since: then nothing is repeated.
        let isNewest = session.refreshTokens.last?.text == successor && session.refreshTokens.last?.firstUse == nil
        let asked = simulation.machine.now
        session.endAsked = asked
        send(session, token) { [self] exchange in
            session.isRefreshing = false
            guard let exchange else { return next(nil) }
            let isLate = age > simulation.plan.graceTime + 5_000_000_000 + simulation.plan.skew
            let isTimely =
                simulation.machine.now - first < simulation.plan.graceTime - simulation.plan.skew && isNewest
                && !simulation.mayForget(session) && session.endAsked == asked && session.end == nil
                && !session.isUnsure
            if exchange.status == 200, exchange.isComplete {
                // Of lost data each gateway writes again what it has written: the session, but not another one's rotation.
                if isLate, (simulation.redis.lastLoss ?? -1) < first {
                    simulation.ledger.violate(
                        .refresh, "a refresh token was exchanged again \(age / 1_000_000) ms after its use")
                }
                if let tokens = Tokens(exchange.responseBody), tokens.refresh != successor, isNewest,
                    !simulation.mayForgetUse(since: first)
                {
                    simulation.ledger.violate(
                        .refresh, "one refresh token of session \(session.id) was exchanged for two pairs")
                }
                if !isTimely {
                    session.isUnsure = true
                } else if session.endAsked == asked, session.end == nil {
                    session.endAsked = nil
                }
            } else if exchange.status == 401 {
                if isTimely {
                    simulation.ledger.violate(
                        .outage, "a refresh that was repeated in time got 401 in request \(exchange.number)")
                }
                if isLate {
                    session.end = (simulation.machine.now, exchange.gateway, exchange.incarnation)
                    return simulation.machine.after(10_000_000) { self.use(session, next) }
                } else {
                    session.isUnsure = true
                }
            } else {
                session.isUnsure = true
            }
            next(exchange)
        }
    }

    /// Ends the session in one of the ways that there are.
    func end(_ session: Session, _ next: @escaping (Exchange?) -> Void) {
        guard !session.isRefreshing else { return next(nil) }
        session.endAsked = simulation.machine.now
        let token = session.access[session.access.count - 1].token
        let done: (Exchange?) -> Void = { [self] exchange in
            if let exchange, [200, 204].contains(exchange.status), exchange.isComplete {
                session.end = session.end ?? (simulation.machine.now, exchange.gateway, exchange.incarnation)
                simulation.ledger.acknowledgeEnd(of: session, by: self)
            }
            next(exchange)
        }
        switch random.below(3) {
        case 0: request("POST", "/auth/logout", .session(session), fields: ["Authorization: Bearer \(token)"], done)
        case 1:
            request(
                "DELETE", "/auth/sessions/\(session.id)", .session(session), fields: ["Authorization: Bearer \(token)"],
                done)
        default:
            let text = random.chance(500) ? token : session.refreshTokens[session.refreshTokens.count - 1].text
            request(
                "POST", "/auth/revoke", .nothing, fields: ["Content-Type: application/x-www-form-urlencoded"],
                body: Array("token=\(text)".utf8), done)
        }
    }
}

/// The tokens in a response.
struct Tokens {
    let access: String
    let refresh: String
    let session: String
    let subject: String
    /// How long the access token is valid, in nanoseconds.
    let lifetime: Int64

    /// The access token, which was issued between two times.
    func valid(since first: Int64, until last: Int64) -> (token: String, from: Int64, until: Int64) {
        (access, first + lifetime, last + lifetime)
    }

    init?(_ bytes: [UInt8]) {
        guard let members = (try? JSON.parse(bytes, limits: JSONLimits(maximumDepth: 8, maximumBytes: 100_000)))?.object
        else { return nil }
        func text(_ name: String) -> String? { members[name]?.string }
        guard let seconds = members["expires_in"]?.int64, let access = text("access_token"),
            let refresh = text("refresh_token"), let session = text("session_id"),
            let subject = text("subject")
        else { return nil }
        self.access = access
        self.refresh = refresh
        self.session = session
        self.subject = subject
        lifetime = seconds * 1_000_000_000
    }
}
