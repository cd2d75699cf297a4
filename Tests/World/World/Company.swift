import MartletCore
import MartletCrypto
import MartletJOSE
import MartletJSON
import WorldMachine

/// An issuer of OpenID Connect, whose users sign in with a browser, with an app, or have tokens.
final class Company: Service {
    static let issuer = "http://127.0.0.1:9108"
    static let secret = "company secret"

    /// What a user was asked for at the issuer's page.
    private struct Code {
        let user: String
        let nonce: String?
        let challenge: String?
        var isUsed = false
    }

    private let key: PrivateKey
    /// Whether browsers come back with a form.
    let isPosted: Bool
    private var codes: [Code] = []

    init(_ simulation: Simulation, _ key: PrivateKey) {
        self.key = key
        isPosted = simulation.plan.companyMode == "form_post"
        super.init(simulation, at: Address(host: 0x7f00_0001, port: 9108), part: "company")
    }

    /// The blocks of `providers`.
    /// - Parameter hasBrowsers: whether users sign in with a browser.
    static func block(hasBrowsers: Bool, mode: String, pkce: Bool) -> String {
        let web = """
                web: {client_id: site, client_secret: "\(secret)", userinfo: true, response_mode: \(mode), pkce: \(pkce), scope: [openid, email], parameters: {audience: "https://api.example"}, forward: [login_hint]}

            """
        return """
              company:
                kind: oidc
                label: The company
                issuer: "\(issuer)"
                audiences: [api]
                algorithms: [ES256]
                rename: [{claim: [realm, roles], as: roles}]
                accepts: [{bearer_prefix: "opq_"}]
                introspection: {url: "\(issuer)/introspect", client_id: gateway, client_secret: "\(secret)", cache: 1s}
                login: {client_ids: [com.example.app], nonce: optional}
            \(hasBrowsers ? web : "")
            """
    }

    private var now: Int64 { simulation.machine.wallTime / 1_000_000_000 }

    /// A token of a user.
    func token(
        of user: String, for audience: String, nonce: String? = nil, age: Int64 = 1, forged: Bool = false
    ) -> String {
        var claims: JSONObject = [
            "iss": .string(Self.issuer), "aud": .string(audience), "sub": .string(user), "iat": .integer(now - age),
            "exp": .integer(now - age + 3600), "scope": "read write", "email": .string("\(user)@company.example"),
            "email_verified": true, "realm": ["roles": ["staff"]],
        ]
        if let nonce { claims["nonce"] = .string(nonce) }
        let input =
            "\(Base64URL.encode(JSON.write(JSONValue.object(["alg": "ES256", "kid": "C1"])))).\(Base64URL.encode(JSON.write(JSONValue.object(claims))))"
        var signature = (try? key.sign(Array(input.utf8))) ?? []
        if forged { signature[8] ^= 1 }
        return "\(input).\(Base64URL.encode(signature))"
    }

    /// A user signs in at the issuer's page.
    /// - Returns: the code that the browser brings back.
    func authorize(_ user: String, _ query: Form) -> String {
        codes.append(Code(user: user, nonce: query["nonce"], challenge: query["code_challenge"]))
        return "code-\(codes.count - 1)"
    }

    override func respond(_ head: MessageHead, _ body: [UInt8]) -> ServiceResponse {
        switch head.target {
        case "/.well-known/openid-configuration":
            let endpoints: JSONObject = [
                "issuer": .string(Self.issuer), "jwks_uri": .string("\(Self.issuer)/keys"),
                "authorization_endpoint": .string("\(Self.issuer)/authorize"),
                "token_endpoint": .string("\(Self.issuer)/token"),
                "userinfo_endpoint": .string("\(Self.issuer)/userinfo"),
                "authorization_response_iss_parameter_supported": true,
            ]
            return ServiceResponse(json: endpoints)
        case "/keys":
            var members = key.publicKey.parts.jwkMembers
            members["kid"] = "C1"
            return ServiceResponse(json: ["keys": .array([.object(members)])])
        case "/token": return exchange(Form(body), head)
        case "/userinfo":
            let user = (head.value("authorization") ?? "").split(separator: "-").last.map(String.init) ?? ""
            return ServiceResponse(json: ["sub": .string(user), "name": .string(user.uppercased())])
        case "/introspect": return introspect(Form(body), head)
        default: return ServiceResponse("404 Not Found", json: "{}")
        }
    }

    private func isClient(_ head: MessageHead, _ name: String) -> Bool {
        head.value("authorization")
            == "Basic \(Base64.encode(Array("\(name):company+secret".utf8), padding: .required))"
    }

    private func exchange(_ form: Form, _ head: MessageHead) -> ServiceResponse {
        guard isClient(head, "site") else {
            return ServiceResponse("401 Unauthorized", json: ["error": "invalid_client"])
        }
        guard let number = form["code"]?.split(separator: "-").last.flatMap({ Int($0) }), codes.indices.contains(number)
        else {
            return ServiceResponse("400 Bad Request", json: ["error": "invalid_grant"])
        }
        let code = codes[number]
        if code.isUsed { simulation.ledger.violate(.singleUse, "code-\(number) was sent to its issuer twice") }
        codes[number].isUsed = true
        let verifier = form["code_verifier"].map { Base64URL.encode(SHA256.digest(Array($0.utf8))) }
        guard !code.isUsed, verifier == code.challenge else {
            return ServiceResponse("400 Bad Request", json: ["error": "invalid_grant"])
        }
        return ServiceResponse(json: [
            "access_token": .string("of-\(code.user)"), "token_type": "Bearer", "expires_in": 3600,
            "id_token": .string(token(of: code.user, for: "site", nonce: code.nonce)),
        ])
    }

    private func introspect(_ form: Form, _ head: MessageHead) -> ServiceResponse {
        guard isClient(head, "gateway"), let token = form["token"], token.hasPrefix("opq_") else {
            simulation.ledger.violate(.identity, "an issuer was asked about \(form["token"] ?? "nothing")")
            return ServiceResponse("401 Unauthorized", json: "{}")
        }
        let user = String(token.dropFirst(4))
        guard user.hasPrefix("c") else { return ServiceResponse(json: ["active": false]) }
        return ServiceResponse(json: [
            "active": true, "sub": .string(user), "aud": "api", "exp": .integer(now + 900), "scope": "read",
        ])
    }
}

extension ServiceResponse {
    init(_ status: String = "200 OK", json: JSONObject) {
        self.init(status, json: String(decoding: JSON.write(JSONValue.object(json)), as: UTF8.self))
    }
}

/// A receiver of events, among which are mails.
final class Hook: Service {
    static let secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
    private var mails: [(address: String, template: String, token: String)] = []
    /// What was delivered, by its id.
    private var seen: [String: [UInt8]] = [:]
    private var signer: WebhookSigner?

    init(_ simulation: Simulation) {
        signer = WebhookSigner(Secret(Array(Self.secret.utf8)))
        super.init(simulation, at: Address(host: 0x7f00_0001, port: 9107), part: "hook")
    }

    /// The newest token that was mailed to an address.
    func token(for address: String, _ template: String) -> String? {
        mails.last { $0.address == address && $0.template == template }?.token
    }

    override func respond(_ head: MessageHead, _ body: [UInt8]) -> ServiceResponse {
        let event = JSONValue.parsed(body)?.object
        guard let id = head.value("webhook-id"), let time = head.value("webhook-timestamp").flatMap({ Int64($0) }),
            signer?.headers(id: id, at: UnixTime(seconds: time), body: body).last?.value
                == head.value("webhook-signature"),
            let type = event?["type"]?.string, event?["id"]?.string == id
        else {
            simulation.ledger.violate(.oneLine, "a receiver got no event: \(head.fields)")
            return ServiceResponse("400 Bad Request", json: "{}")
        }
        if let old = seen.updateValue(body, forKey: id), old != body {
            simulation.ledger.violate(.oneLine, "two events are \(id)")
        }
        if type == "dev.martlet.mail.requested", let data = event?["data"]?.object {
            let (address, token) = (data["address"]?.string ?? "", data["token"]?.string ?? "")
            mails.append((address, data["template"]?.string ?? "", token))
            if address.hasPrefix("stranger"), !token.isEmpty {
                simulation.ledger.violate(.identity, "a stranger got the mail \(String(decoding: body, as: UTF8.self))")
            }
        }
        if type == "dev.martlet.account.deleted", let subject = event?["subject"]?.string,
            simulation.ledger.accounts.lastDeletion(of: subject) == nil
        {
            simulation.ledger.violate(.deletion, "an event says that \(subject) was deleted, which was not asked for")
        }
        return ServiceResponse(random.chance(50) ? "500 Internal Server Error" : "204 No Content", json: "")
    }
}
