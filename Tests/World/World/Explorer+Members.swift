import MartletJSON
import WorldMachine

/// A user who registers with an address, and looks after the account.
final class Member {
    let address: String
    var identity: String { "people:\(address)" }
    /// Passwords of which one is right: several after a change whose outcome is unknown.
    var passwords: [String] = []
    var old: String?
    var isRegistered = false
    var subject: String?
    /// The identity that is linked, the user at WeChat who has it, and whether both are certain.
    var link: (identity: String, user: String)?
    var isLinkSure = true
    var links = 0
    var name: String?
    /// The token of a mail that was used, and whether it surely was.
    var usedToken: String?

    init(_ address: String) { self.address = address }
}

extension Explorer {
    private static let form = "Content-Type: application/x-www-form-urlencoded"
    private static let json = "Content-Type: application/json"

    /// One step in the life of a member.
    func member(_ next: @escaping Next) {
        guard let member = current, !isGone(member) else {
            let member = Member("m\(client.random.below(1000))-\(members)@example.com")
            members += 1
            current = member
            return register(member, next)
        }
        guard member.isRegistered else { return confirm(member, next) }
        guard let session = living, session.identity == member.identity else {
            return client.random.chance(150) ? forget(member, next) : login(member, next)
        }
        switch client.random.below(20) {
        case 0, 1, 2: changePassword(member, session, next)
        case 3: forget(member, next)
        case 4: reset(member, next)
        case 5, 6, 7: link(member, session, next)
        case 8, 9, 10: unlink(member, session, next)
        case 11, 12: authenticateAgain(member, session, next)
        case 13, 14: describe(member, session, next)
        case 15, 16: list(member, session, next)
        case 17: client.delete(session, next)
        case 18: client.end(session, next)
        default: client.use(session, next)
        }
    }

    private func isGone(_ member: Member) -> Bool {
        member.subject.map { simulation.ledger.accounts.lastDeletion(of: $0) != nil } ?? false
            || member.passwords.count > 1
    }

    private func post(
        _ path: String, _ members: JSONObject, _ proof: Proof, fields: [String] = [],
        _ done: @escaping (Exchange) -> Void
    ) {
        client.request(
            path == "/auth/profile" ? "PATCH" : "POST", path, proof, fields: fields + [Self.json],
            body: JSON.write(JSONValue.object(members)), isSafe: true
        ) { exchange in if let exchange { done(exchange) } }
    }

    private func bearer(_ session: Session) -> [String] {
        ["Authorization: Bearer \(session.access.last?.token ?? "")"]
    }

    // MARK: Mails

    private func register(_ member: Member, _ next: @escaping Next) {
        post(
            "/auth/register",
            ["email": .string(member.address), "name": "M", "password": "first password", "locale": "zh"], .nothing
        ) {
            [self] exchange in
            if exchange.status == 204 {
                // Without a mail.
                (member.isRegistered, member.passwords) = (true, ["first password"])
            } else if exchange.isDecided, exchange.status != 202 {
                violate(.routing, exchange, "cannot register: \(exchange.status)")
            }
            next(exchange)
        }
    }

    private func confirm(_ member: Member, _ next: @escaping Next) {
        guard let token = simulation.offers.hook?.token(for: member.address, "register") else {
            return client.random.chance(300) ? register(member, next) : next(nil)
        }
        let isFirst = member.usedToken != token
        member.usedToken = token
        let password = "password \(client.random.below(1000))"
        post("/auth/register/verify", ["token": .string(token), "password": .string(password)], .nothing) {
            [self] exchange in
            if exchange.status == 204 {
                (member.isRegistered, member.passwords) = (true, [password])
            } else if exchange.status == 401, isFirst {
                violate(.outage, exchange, "has a new token of a mail, and got 401")
            } else if !isFirst, exchange.status == 401 {
                // The first time has taken effect, with another password.
                (member.isRegistered, member.passwords) = (true, ["?", "??"])
            }
            next(exchange)
        }
    }

    private func forget(_ member: Member, _ next: @escaping Next) {
        let address = client.random.chance(200) ? "stranger@example.com" : member.address
        post("/auth/password/forgot", ["email": .string(address)], .nothing) { [self] exchange in
            if exchange.isDecided, exchange.status != 202 { violate(.routing, exchange, "got \(exchange.status)") }
            next(exchange)
        }
    }

    private func reset(_ member: Member, _ next: @escaping Next) {
        guard let token = simulation.offers.hook?.token(for: member.address, "password_reset"),
            let subject = member.subject
        else {
            return forget(member, next)
        }
        let isFirst = member.usedToken != token
        member.usedToken = token
        let book = simulation.ledger.accounts
        let sessions = book.askEnd(of: subject)
        // The first proof of the address removes what was added before.
        if let link = member.link { book.unlink(link.identity) }
        (member.link, member.isLinkSure) = (nil, false)
        let password = "reset \(client.random.below(1000))"
        post("/auth/password/reset", ["token": .string(token), "new_password": .string(password)], .nothing) {
            [self] exchange in
            if exchange.status == 204 {
                if !isFirst, !member.passwords.isEmpty {
                    violate(.singleUse, exchange, "has used the token of a mail twice")
                }
                changed(member, to: password)
                book.end(sessions, exchange)
            } else if exchange.status == 0 || exchange.status >= 500 {
                member.passwords.append(password)
                for session in sessions { session.isUnsure = true }
            } else {
                // A token that the change of a password has ended.
                for session in sessions { session.isUnsure = true }
            }
            next(exchange)
        }
    }

    private func changed(_ member: Member, to password: String) {
        member.old = member.passwords.first
        member.passwords = [password]
    }

    // MARK: Passwords

    private func login(_ member: Member, _ next: @escaping Next) {
        let isOld = member.old != nil && client.random.chance(200)
        let password = isOld ? member.old ?? "" : member.passwords.first ?? ""
        simulation.ledger.accounts.sends(member.identity)
        client.request(
            "POST", "/auth/login/people", isOld ? .wrong : .direct(subject: member.identity), fields: [Self.form],
            body: Array("username=\(member.address)&password=\(password)".utf8), isSafe: true
        ) { [self] exchange in
            guard let exchange else { return next(nil) }
            if exchange.status == 200, exchange.isComplete {
                if isOld, password != member.passwords.first {
                    violate(.revocation, exchange, "has a password that was changed, and is let in")
                }
                client.begin(exchange, as: member.identity)
                member.subject = client.session?.subject
            } else if exchange.status == 401, !isOld,
                !simulation.ledger.accounts.mayOvertake(member.identity, since: exchange.sentAt)
            {
                violate(.outage, exchange, "has the right password, and got 401")
            }
            next(exchange)
        }
    }

    private func changePassword(_ member: Member, _ session: Session, _ next: @escaping Next) {
        let isWrong = client.random.chance(200)
        let password = "changed \(client.random.below(1000))"
        let book = simulation.ledger.accounts
        let others = isWrong ? [] : book.askEnd(of: session.subject, except: session)
        post(
            "/auth/password",
            [
                "current_password": .string(isWrong ? "wrong" : member.passwords.first ?? ""),
                "new_password": .string(password),
            ], isWrong ? .wrong : .session(session), fields: bearer(session)
        ) { [self] exchange in
            switch exchange.status {
            case 204 where isWrong: violate(.identity, exchange, "has changed a password without it")
            case 204:
                changed(member, to: password)
                book.end(others, exchange)
            case 0, 500...:
                if !isWrong { member.passwords.append(password) }
                fallthrough
            default: for other in others { other.isUnsure = true }
            }
            next(exchange)
        }
    }

    private func authenticateAgain(_ member: Member, _ session: Session, _ next: @escaping Next) {
        // Another's credential is good, and does not count.
        let isOther = client.random.chance(300)
        let members: JSONObject =
            isOther
            ? ["provider": "password", "username": .string("u\(client.user)"), "password": "secret-0"]
            : [
                "provider": "people", "username": .string(member.address),
                "password": .string(member.passwords.first ?? ""),
            ]
        post("/auth/reauthenticate", members, isOther ? .wrong : .session(session), fields: bearer(session)) {
            [self] exchange in
            guard exchange.status == 200, exchange.isComplete else { return next(exchange) }
            let id = JSONValue.parsed(exchange.responseBody)?.object?["session_id"]?.string
            if isOther || id != session.id { violate(.identity, exchange, "has authenticated as \(id ?? "none")") }
            next(exchange)
        }
    }

    // MARK: Identities

    private func link(_ member: Member, _ session: Session, _ next: @escaping Next) {
        guard plan.callers.hasWeChat else { return list(member, session, next) }
        let book = simulation.ledger.accounts
        if let link = member.link, client.random.chance(700) { return loginLinked(member, link, next) }
        guard member.link == nil, member.isLinkSure else { return list(member, session, next) }
        member.links += 1
        let user = member.address.filter(\.isNumber) + "n\(member.links)"
        let code = simulation.weChat.issue(for: user, client: client.index)
        let identity = "wechat:u:\(WeChat.unionID(user))"
        member.isLinkSure = false
        client.request(
            "POST", "/auth/link/wechat", .session(session), fields: bearer(session) + [Self.form],
            body: Array("app=ios&code=\(code.text)".utf8), isSafe: true
        ) { [self] exchange in
            if let exchange, exchange.status == 204 {
                (member.link, member.isLinkSure) = ((identity, user), true)
                book.link(identity, to: member.identity)
            } else if let exchange, exchange.status == 409 {
                violate(.identity, exchange, "cannot link a new identity")
            }
            next(exchange)
        }
    }

    private func loginLinked(_ member: Member, _ link: (identity: String, user: String), _ next: @escaping Next) {
        let code = simulation.weChat.issue(for: link.user, client: client.index)
        simulation.ledger.accounts.sends(link.identity)
        client.request(
            "POST", "/auth/login/wechat", .direct(subject: link.identity), fields: [Self.form],
            body: Array("app=ios&code=\(code.text)".utf8), isSafe: true
        ) { [self] exchange in
            if let exchange, exchange.status == 200, exchange.isComplete {
                // The subject has to be the member's: the book knows of the link.
                client.begin(exchange, as: link.identity)
            }
            next(exchange)
        }
    }

    private func unlink(_ member: Member, _ session: Session, _ next: @escaping Next) {
        guard let link = member.link else { return self.link(member, session, next) }
        let book = simulation.ledger.accounts
        let sessions = book.askEnd(of: session.subject, "wechat")
        book.unlink(link.identity)
        (member.link, member.isLinkSure) = (nil, false)
        client.request("DELETE", "/auth/link/wechat", .session(session), fields: bearer(session)) { [self] exchange in
            if let exchange, exchange.status == 204 {
                member.isLinkSure = true
                book.end(sessions, exchange)
                return loginUnlinked(member, link, next)
            }
            for session in sessions { session.isUnsure = true }
            next(exchange)
        }
    }

    /// Whoever was unlinked is someone else from now on.
    private func loginUnlinked(_ member: Member, _ link: (identity: String, user: String), _ next: @escaping Next) {
        let code = simulation.weChat.issue(for: link.user, client: client.index)
        client.request(
            "POST", "/auth/login/wechat", .direct(subject: link.identity), fields: [Self.form],
            body: Array("app=ios&code=\(code.text)".utf8), isSafe: true
        ) { [self] exchange in
            if let exchange, exchange.status == 200, exchange.isComplete, let tokens = Tokens(exchange.responseBody),
                tokens.subject == member.subject
            {
                violate(.revocation, exchange, "is \(tokens.subject), of which it was unlinked")
            }
            next(exchange)
        }
    }

    private func describe(_ member: Member, _ session: Session, _ next: @escaping Next) {
        let name = client.random.chance(600) ? "Name \(client.random.below(100))" : nil
        let bad: JSONObject = client.random.pick([
            ["name": 7], ["locale": "not a tag!"], ["nickname": "N"], ["name": .string("\u{202e}x")],
        ])
        let isBad = client.random.chance(200)
        let before = member.name
        member.name = nil
        post(
            "/auth/profile", isBad ? bad : ["name": name.map { .string($0) } ?? .null], .session(session),
            fields: bearer(session)
        ) {
            [self] exchange in
            if isBad {
                member.name = before
                if exchange.status == 200 { violate(.routing, exchange, "is no profile, and is accepted") }
            } else if exchange.status == 200 {
                member.name = name
            }
            next(exchange)
        }
    }

    /// What an account says of itself.
    private func list(_ member: Member, _ session: Session, _ next: @escaping Next) {
        let path = client.random.pick(["/auth/identities", "/auth/account", "/auth/session"])
        let (name, link, isSure) = (member.name, member.link, member.isLinkSure)
        client.request("GET", path, .session(session), fields: bearer(session)) { [self] exchange in
            defer { next(exchange) }
            guard let exchange, exchange.status == 200, exchange.isComplete,
                let members = JSONValue.parsed(exchange.responseBody)?.object
            else { return }
            let all = members["identities"]?.array ?? []
            let found = Set(all.compactMap { $0.object?["provider"]?.string })
            if isSure, !session.isUnsure, found != Set(["people"] + (link == nil ? [] : ["wechat"])) {
                violate(.identity, exchange, "has the identities \(found.sorted())")
            }
            if let subject = members["subject"]?.string, subject != session.subject {
                violate(.identity, exchange, "is \(subject), not \(session.subject)")
            }
            if path == "/auth/account", let name, members["profile"]?.object?["name"]?.string != name {
                violate(.routing, exchange, "has not the name \(name)")
            }
        }
    }
}
