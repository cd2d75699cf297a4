import MartletCore
import MartletCrypto
import MartletJOSE
import MartletJSON
import WorldMachine

/// Users of an issuer of OpenID Connect.
extension Explorer {
    private static let verifier = "0123456789abcdef0123456789abcdef0123456789abcdef"
    private static let cookie = "__Host-martlet"

    private var employee: String { "c\(client.user)" }
    private var identity: String { "company:\(employee)" }

    /// Presents a token as it is.
    func presentToken(_ next: @escaping Next) {
        guard let company = simulation.offers.company else { return next(nil) }
        let (token, isGood): (String, Bool) =
            switch client.random.below(7) {
            case 0: (company.token(of: employee, for: "other"), false)
            case 1: (company.token(of: employee, for: "api", age: 90_000), false)
            case 2: (company.token(of: employee, for: "api", forged: true), false)
            case 3: ("opq_\(employee)", true)
            case 4: ("opq_x", false)
            default: (company.token(of: employee, for: "api"), true)
            }
        client.request(
            "GET", "/task/", isGood ? .direct(subject: identity) : .wrong, needsProof: true,
            fields: ["Authorization: Bearer \(token)"]
        ) { [self] exchange in
            if isGood, let exchange, exchange.status == 401, plan.skew < 50_000_000_000,
                !simulation.ledger.accounts.hasLeft(identity, since: simulation.machine.now - 4_000_000_000)
            {
                violate(.outage, exchange, "has a good token, and got 401")
            }
            next(exchange)
        }
    }

    /// An app's login.
    func loginWithToken(_ next: @escaping Next) {
        guard let company = simulation.offers.company else { return next(nil) }
        let isGood = client.random.chance(700)
        let token = company.token(of: employee, for: isGood ? "com.example.app" : "site")
        simulation.ledger.accounts.sends(identity)
        client.request(
            "POST", "/auth/login/company", isGood ? .direct(subject: identity) : .wrong,
            fields: ["Content-Type: application/x-www-form-urlencoded"], body: Array("id_token=\(token)".utf8),
            isSafe: true
        ) { [self] exchange in
            if let exchange, exchange.status == 200, exchange.isComplete {
                if !isGood { violate(.identity, exchange, "has another client's token, and is let in") }
                client.begin(exchange, as: identity)
            }
            next(exchange)
        }
    }

    // MARK: With a browser

    /// Goes to the issuer's page and comes back.
    func signInAtCompany(_ next: @escaping Next) {
        let isApp = client.random.chance(500)
        let challenge = Base64URL.encode(SHA256.digest(Array(Self.verifier.utf8)))
        let query =
            isApp
            ? "client=native&redirect=com.example.app%3A%2Fcb&code_challenge=\(challenge)&state=s%201"
            : "return_to=%2Fpub%2F&login_hint=me&confirm=\(client.random.chance(300))"
        var trial = Trial("/auth/start/company")
        trial.target = { _ in "/auth/start/company?\(query)" }
        trial.fields = ["Sec-Fetch-Mode: navigate", "Accept: text/html"]
        send(trial) { [self] exchange in
            guard exchange.status == 302, let location = exchange.head?.value("location"),
                location.hasPrefix("\(Company.issuer)/authorize?"), let cookie = Self.setCookie("-start-", exchange)
            else {
                // An outage sends the app back.
                let isBack = exchange.head?.value("location")?.hasPrefix("com.example.app:/cb?error=") ?? false
                if exchange.isDecided, !isBack { violate(.routing, exchange, "leads nowhere: \(exchange.status)") }
                return next(exchange)
            }
            let asked = Form(Array(location.utf8.drop { $0 != UInt8(ascii: "?") }.dropFirst()))
            comeBack(asked, cookie, isApp: isApp, next)
        }
    }

    /// The cookie that a response sets, with its name.
    private static func setCookie(_ part: String, _ exchange: Exchange) -> String? {
        for field in exchange.head?.fields ?? [] where field.name.lowercased() == "set-cookie" {
            let pair = field.value.prefix { $0 != ";" }
            if part.isEmpty ? pair.hasPrefix(cookie + "=") : pair.hasPrefix(cookie + part), !pair.hasSuffix("=") {
                return String(pair)
            }
        }
        return nil
    }

    private func comeBack(_ asked: Form, _ cookie: String, isApp: Bool, _ next: @escaping Next) {
        guard let company = simulation.offers.company, let state = asked["state"] else { return next(nil) }
        let isCancelled = client.random.chance(100)
        let isStranger = client.random.chance(150)
        let code = company.authorize(employee, asked)
        let result = isCancelled ? "error=access_denied" : "code=\(code)"
        let fields = "\(result)&state=\(state)&iss=http%3A%2F%2F127.0.0.1%3A9108"
        var trial = Trial("/auth/callback/company")
        trial.proof = .direct(subject: identity)
        trial.fields = ["Sec-Fetch-Mode: navigate", "Accept: text/html"] + (isStranger ? [] : ["Cookie: \(cookie)"])
        if company.isPosted {
            trial.method = "POST"
            trial.body = Array(fields.utf8)
            trial.fields += ["Content-Type: application/x-www-form-urlencoded", "Origin: \(Company.issuer)"]
        } else {
            trial.target = { _ in "/auth/callback/company?\(fields)" }
        }
        simulation.ledger.accounts.sends(identity)
        send(trial) { [self] exchange in
            let location = exchange.head?.value("location") ?? ""
            let isIn = isApp ? location.contains("code=") : Self.setCookie("", exchange) != nil
            if isIn, isCancelled || isStranger {
                violate(
                    .identity, exchange, "is signed in, though it \(isStranger ? "began elsewhere" : "was cancelled")")
            }
            guard isIn else { return next(exchange) }
            if isApp {
                redeem(location, next)
            } else {
                ask(Self.setCookie("", exchange) ?? "", exchange, next)
            }
        }
    }

    /// An app exchanges its code for tokens, once.
    private func redeem(_ location: String, _ next: @escaping Next) {
        let fields = Form(Array(location.utf8.drop { $0 != UInt8(ascii: "?") }.dropFirst()))
        guard let code = fields["code"] else { return next(nil) }
        if !location.hasPrefix("com.example.app:/cb?") || fields["state"] != "s 1" {
            simulation.ledger.violate(.routing, "an app is at \(location)")
        }
        let isWrong = client.random.chance(200)
        let verifier = isWrong ? String(Self.verifier.reversed()) : Self.verifier
        let redeem = { [self] (done: @escaping Next) in
            client.request(
                "POST", "/auth/token", isWrong ? .wrong : .direct(subject: identity),
                fields: ["Content-Type: application/x-www-form-urlencoded"],
                body: Array("grant_type=authorization_code&code=\(code)&code_verifier=\(verifier)".utf8), isSafe: true,
                done)
        }
        let began = simulation.machine.now
        redeem { [self] exchange in
            guard let exchange, exchange.status == 200, exchange.isComplete else { return next(exchange) }
            if isWrong { violate(.identity, exchange, "has another verifier, and gets tokens") }
            client.begin(exchange, as: identity)
            redeem { [self] again in
                if let again, again.status == 200, !simulation.mayForgetUse(since: began) {
                    violate(.singleUse, again, "has used the code of an app twice")
                }
                next(again)
            }
        }
    }

    /// Whose session a cookie is.
    private func ask(_ cookie: String, _ login: Exchange, _ next: @escaping Next) {
        client.request("GET", "/auth/session", .nothing, fields: ["Cookie: \(cookie)"]) { [self] exchange in
            if let exchange, exchange.status == 200, exchange.isComplete,
                let subject = JSONValue.parsed(exchange.responseBody)?.object?["subject"]?.string,
                let wrong = simulation.ledger.accounts.observe(identity, as: subject, sentAt: login.sentAt)
            {
                violate(.identity, exchange, wrong)
            }
            next(exchange)
        }
    }

    // MARK: Keys of clients

    /// A proof of the client's key (RFC 9449).
    private func proofField(_ method: String, _ path: String, token: String?, trick: Int) -> String {
        let key = simulation.offers.clientKey
        let header: JSONObject = ["typ": "dpop+jwt", "alg": "ES256", "jwk": .object(key.publicKey.parts.jwkMembers)]
        var claims: JSONObject = [
            "jti": .string("p\(client.random.next())"), "htm": .string(trick == 1 ? "PATCH" : method),
            "htu": .string("http://api.example.com\(trick == 2 ? "/other" : path)"),
            "iat": .integer(simulation.machine.wallTime / 1_000_000_000 - (trick == 3 ? 300 : 0)),
        ]
        if let token {
            claims["ath"] = .string(Base64URL.encode(SHA256.digest(Array((trick == 4 ? "other" : token).utf8))))
        }
        let input =
            "\(Base64URL.encode(JSON.write(JSONValue.object(header)))).\(Base64URL.encode(JSON.write(JSONValue.object(claims))))"
        let signature = (try? key.sign(Array(input.utf8))) ?? []
        return "DPoP: \(input).\(Base64URL.encode(signature))"
    }

    /// A session whose tokens are of use to the holder of a key alone.
    func bind(_ next: @escaping Next) {
        guard let session = bound, session.endAsked == nil, !session.isUnsure, !simulation.mayForget(session),
            let token = session.access.last?.token
        else { return loginBound(next) }
        let trick = client.random.chance(500) ? 0 : client.random.within(1...6)
        var trial = Trial("/me/")
        let isKnown = plan.skew < 4_000_000_000
        trial.needsProof = true
        trial.proof = trick == 0 && isKnown ? .session(session) : .wrong
        if trick == 0, !isKnown { trial.proof = .program(subject: session.subject) }
        trial.more = { [self] exchange in
            let proof = proofField("GET", exchange.path, token: token, trick: trick)
            if trick == 5 { return ["Authorization: Bearer \(token)", proof] }
            if trick == 6 { return ["Authorization: DPoP \(token)"] }
            return ["Authorization: DPoP \(token)", proof]
        }
        send(trial, next) { exchange in
            exchange.isFromUpstream && trick > 0 && !(trick == 3 && !isKnown) ? "its proof does not hold" : nil
        }
    }

    private func loginBound(_ next: @escaping Next) {
        let subject = client.subject
        simulation.ledger.accounts.sends(subject)
        var trial = Trial("/auth/login/password")
        (trial.method, trial.proof) = ("POST", .direct(subject: subject))
        trial.fields = [
            "Content-Type: application/x-www-form-urlencoded",
            proofField("POST", "/auth/login/password", token: nil, trick: 0),
        ]
        trial.body = Array("username=u\(client.user)&password=secret-0".utf8)
        send(trial) { [self] exchange in
            if exchange.status == 200, exchange.isComplete, let tokens = Tokens(exchange.responseBody) {
                let session = Session(subject: tokens.subject, origin: exchange, at: simulation.machine.now, tokens)
                session.identity = subject
                session.isUnsure = simulation.isShaken(exchange)
                simulation.ledger.sessions.append(session)
                simulation.ledger.accounts.begun(session, exchange)
                bound = session
                if JSONValue.parsed(exchange.responseBody)?.object?["token_type"]?.string != "DPoP" {
                    violate(.identity, exchange, "is not bound to its key")
                }
            }
            next(exchange)
        }
    }
}
