import MartletCore
import MartletJSON
import WorldMachine

/// The codes and refresh tokens of an issuer.
final class GrantBook {
    /// A refresh token.
    final class Grant {
        let token: String
        let login: AppleLogin
        let issuedAt: Int64
        var revokedAt: Int64?
        /// The account whose login got it, once the login was acknowledged.
        var account: String?
        /// Whether its code came again: the response that had it was lost, and no gateway knows it.
        var isLost = false

        init(_ token: String, _ login: AppleLogin, at time: Int64) {
            self.token = token
            self.login = login
            issuedAt = time
        }
    }

    private(set) var grants: [Grant] = []
    private var codes: [(text: String, login: AppleLogin, usedAt: Int64?)] = []

    func issueCode(_ login: AppleLogin) -> String {
        let text = "code.\(codes.count).abcdefghijklmnopqrstuvwxyz"
        codes.append((text, login, nil))
        return text
    }

    /// - Returns: the grant for a code; `nil` for one that is not valid.
    func exchange(_ code: String, _ simulation: Simulation) -> Grant? {
        guard let index = codes.firstIndex(where: { $0.text == code }) else { return nil }
        let now = simulation.machine.now
        if let first = codes[index].usedAt {
            for grant in grants where grant.login === codes[index].login { grant.isLost = true }
            if !simulation.mayForgetUse(since: first) {
                simulation.ledger.violate(.singleUse, "\(code.prefix(7)) was sent to its issuer twice")
            }
            return nil
        }
        codes[index].usedAt = now
        let grant = Grant("refresh.\(grants.count)", codes[index].login, at: now)
        grants.append(grant)
        return grant
    }

    func grant(_ token: String?) -> Grant? { grants.first { $0.token == token } }

    func revokeAll(of subject: String, at time: Int64) {
        for grant in grants where grant.login.token.subject == subject { grant.revokedAt = time }
    }

    /// The newest of a user.
    func newest(of subject: String) -> Grant? { grants.last { $0.login.token.subject == subject } }

    /// A login was acknowledged.
    func acknowledge(_ login: AppleLogin, account: String) {
        for grant in grants where grant.login === login && !grant.isLost { grant.account = account }
    }
}

extension Issuer {
    func issueTokens(_ body: [UInt8]) -> ServiceResponse {
        let form = Form(body)
        let refused = ServiceResponse("400 Bad Request", json: "{\"error\":\"invalid_grant\"}")
        guard form["client_id"] == Self.audience, form["client_secret"] != nil else {
            return ServiceResponse("400 Bad Request", json: "{\"error\":\"invalid_client\"}")
        }
        let found: GrantBook.Grant? =
            switch form["grant_type"] {
            case "authorization_code": form["code"].flatMap { grants.exchange($0, simulation) }
            default: grants.grant(form["refresh_token"])
            }
        guard let found, found.revokedAt == nil else {
            // The gateway learns by it that the user's consent has ended.
            if let subject = found?.login.token.subject {
                simulation.ledger.accounts.consentIsGone(of: "apple:" + subject)
            }
            return refused
        }
        let refresh = form["code"] == nil ? "" : "\"refresh_token\":\"\(found.token)\","
        return ServiceResponse(
            json: "{\"access_token\":\"access\",\"token_type\":\"Bearer\",\"expires_in\":3600,\(refresh)"
                + "\"id_token\":\"\(found.login.token.text)\"}")
    }

    func revoke(_ body: [UInt8]) -> ServiceResponse {
        let form = Form(body)
        if let grant = grants.grant(form["token"]) {
            // At Apple a revocation ends all that the user has granted to the app.
            grants.revokeAll(of: grant.login.token.subject, at: simulation.machine.now)
            if let account = grant.account, simulation.ledger.accounts.lastDeletion(of: account) == nil {
                simulation.ledger.violate(.deletion, "\(grant.token) of \(account), which exists, was revoked")
            }
        }
        return ServiceResponse(json: "")
    }

    /// A deletion whose refresh token the issuer has not seen again.
    var unrevoked: String? {
        let book = simulation.ledger.accounts
        for deletion in book.deletions where deletion.acknowledgedAt != nil {
            guard let grant = grants.grants.last(where: { $0.account == deletion.subject }),
                grants.newest(of: grant.login.token.subject) === grant, grant.issuedAt < deletion.askedAt,
                // A login after it has the grant for itself, and a notification has dropped it.
                book.lastLogins["apple:" + grant.login.token.subject] ?? 0 < deletion.askedAt,
                book.revocations["apple:" + grant.login.token.subject] == nil, grant.revokedAt == nil
            else { continue }
            return "\(grant.token) of \(deletion.subject), which was deleted at \(deletion.askedAt)"
        }
        return nil
    }

    // MARK: Notifications

    /// Signs a notification; `nil` if there were enough.
    func notification(_ type: String, of subject: String) -> String? {
        guard notificationsLeft > 0 else { return nil }
        notificationsLeft -= 1
        let now = simulation.machine.wallTime / 1_000_000
        let events: JSONObject = ["type": .string(type), "sub": .string(subject), "event_time": .integer(now)]
        let claims: JSONObject = [
            "iss": .string(Self.name), "aud": .string(Self.audience), "iat": .integer(now / 1000),
            "exp": .integer(now / 1000 + 86_400), "jti": .string("event-\(notificationsLeft)"),
            "events": .string(String(decoding: JSON.write(JSONValue.object(events)), as: UTF8.self)),
        ]
        return sign(["kid": .string(key.id), "alg": "RS256"], claims, by: key.key)
    }
}

extension AppleUser {
    /// The user withdraws the consent at Apple, or deletes the account there, and Apple reports it.
    func withdraw(_ next: @escaping (Exchange?) -> Void) {
        let book = simulation.ledger.accounts
        let type = client.random.pick(["consent-revoked", "account-delete"])
        guard let account = book.account(of: identity), let payload = issuer.notification(type, of: subject) else {
            return next(nil)
        }
        let keyID = issuer.key.id
        let deletion = type == "account-delete" ? book.askDeletion(of: account) : nil
        let sessions = deletion?.sessions ?? book.askRevocation(of: account)
        book.revoked(identity)
        if deletion != nil { book.close(identity) }
        let body = JSON.write(JSONValue.object(["payload": .string(payload)]))
        client.request(
            "POST", "/auth/apple/notifications", .nothing, fields: ["Content-Type: application/json"], body: body,
            isSafe: true
        ) { [self] exchange in
            if let exchange, exchange.status == 200, exchange.isComplete,
                JSONValue.parsed(exchange.responseBody)?.object?["outcome"]?.string == "applied"
            {
                if let deletion { book.acknowledge(deletion, exchange) } else { book.end(sessions, exchange) }
            } else {
                for session in sessions { session.isUnsure = true }
                if let exchange, exchange.status == 400, issuer.isKnown(keyID),
                    simulation.plan.skew < 50_000_000_000
                {
                    simulation.ledger.violate(.outage, "a good notification got 400 in request \(exchange.number)")
                }
            }
            simulation.ledger.closeEndings(of: account)
            simulation.machine.after(3_000_000_000) { [self] in issuer.forget(subject) }
            next(exchange)
        }
    }
}

/// The members of a form.
struct Form {
    private var members: [(name: String, value: String)] = []

    init(_ bytes: [UInt8]) {
        for pair in String(decoding: bytes, as: UTF8.self).split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            members.append((Self.plain(parts[0]), parts.count > 1 ? Self.plain(parts[1]) : ""))
        }
    }

    subscript(name: String) -> String? { members.first { $0.name == name }?.value }

    private static func plain(_ text: Substring) -> String {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let first = rest.popFirst() {
            guard first == UInt8(ascii: "%"), rest.count >= 2,
                let byte = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
            else {
                bytes.append(first == UInt8(ascii: "+") ? 32 : first)
                continue
            }
            bytes.append(byte)
            rest = rest.dropFirst(2)
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
