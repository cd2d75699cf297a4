import MartletConfig
import MartletCore
import MartletEvents
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

@testable import MartletAccounts
@testable import MartletResponder
@testable import MartletSignIn

private func rules(
    verifies: Bool = true, requiresName: Bool = false, registers: Bool = true, resets: Bool = true, link: String? = nil
) -> SelfServingProvider {
    SelfServingProvider(
        verifies: verifies, requiresName: requiresName, registers: registers, resets: resets, link: link)
}

private let ada = #""email":"Ada@Example.com","password":"correct horse""#

@Suite struct `A registration` {
    @Test func `creates a user once the mail's link is used`() async throws {
        try await withSelfService([rules(link: "https://app.example.com/v#{token}")]) { service in
            let reply = await service.register(#"{\#(ada),"name":" Ada\t Lovelace ","locale":"ZH-hans"}"#)
            #expect(reply.status == 202 && reply.object["expires_in"]?.int64 == 1800)
            #expect(try await service.user("ada@example.com") == nil)
            let mail = try #require(try await service.mails().first)
            #expect(mail.address == "ada@example.com" && mail.template == .register && mail.locale == "zh-Hans")
            #expect(mail.expiresAt.seconds == service.stand.time.now + 1800)
            let token = try #require(mail.token)
            #expect(token.hasPrefix("mlt_") && mail.link == "https://app.example.com/v#\(token)")
            let verification = #"{"token":"\#(token)","password":"correct horse"}"#
            let verified = await service.stand.post("/auth/register/verify", verification)
            #expect(verified.status == 204)
            let user = try #require(try await service.user("ada@example.com"))
            #expect(user.hash == "hash of correct horse" && user.name == "ada@example.com")
            let claims: JSONObject = [
                "name": "Ada Lovelace", "locale": "zh-Hans", "email": "ada@example.com", "email_verified": true,
            ]
            #expect(user.claims == claims)
            let again = await service.stand.post("/auth/register/verify", verification)
            #expect(again.summary == "401 credential_invalid signin.bad_link")
        }
    }

    @Test func `of a known address looks the same, and mails that it is known`() async throws {
        let provider = rules()
        try await withSelfService([provider]) { service in
            let record = UserRecord(name: "ada", key: "ada@example.com", hash: "old", isDisabled: false)
            try await service.accounts.addUser(record, at: UnixTime(seconds: 0))
            let known = await service.register("{\(ada)}")
            let unknown = await service.register(#"{"email":"bob@example.com","password":"correct horse"}"#)
            #expect(known.status == unknown.status && known.response.body == unknown.response.body)
            let names = known.response.fields.map(\.name)
            #expect(names == unknown.response.fields.map(\.name))
            // The same steps: a stored link with an event. The password comes with the proof.
            #expect(provider.hashed.value.isEmpty)
            let mails = try await service.mails()
            #expect(mails.map(\.template) == [.alreadyRegistered, .register])
            #expect(mails.first?.token == nil && mails.first?.link == nil)
            #expect(try await service.user("ada@example.com")?.hash == "old")
        }
    }

    @Test func `without verification adds the user, and looks the same for a known address`() async throws {
        let provider = rules(verifies: false)
        try await withSelfService([provider]) { service in
            let first = await service.register(#"{\#(ada),"name":"Ada"}"#)
            let second = await service.register(#"{"email":"ada@example.com","password":"another horse"}"#)
            #expect(first.status == 204 && second.status == 204)
            #expect(first.response.fields.map(\.name) == second.response.fields.map(\.name))
            #expect(provider.hashed.value.count == 2)
            let user = try #require(try await service.user("ada@example.com"))
            // An address that was not verified is no claim.
            #expect(user.hash == "hash of correct horse" && user.claims == ["name": "Ada"])
            #expect(try await service.mails().isEmpty)
        }
    }

    static let bad: [(body: String, pointer: String, code: String)] = [
        (#"{"password":"correct horse"}"#, "/email", "missing"),
        (#"{"email":"ada","password":"correct horse"}"#, "/email", "invalid"),
        (#"{"email":"a@b.cd\r\nBcc: x@y.zz","password":"correct horse"}"#, "/email", "invalid"),
        (#"{"email":["a@b.cd"],"password":"correct horse"}"#, "/email", "unknown_type"),
        (#"{"email":"a@b.cd","password":"correct horse"}"#, "/name", "missing"),
        (#"{"email":"a@b.cd","password":"correct horse","name":""}"#, "/name", "missing"),
        (#"{"email":"a@b.cd","password":"correct horse","name":"\u0007"}"#, "/name", "invalid"),
        (
            #"{"email":"a@b.cd","password":"correct horse","name":"\#(String(repeating: "a", count: 257))"}"#, "/name",
            "too_long"
        ),
        (#"{"email":"a@b.cd","password":"correct horse","name":"A","locale":"en_US"}"#, "/locale", "invalid"),
        (#"{"email":"a@b.cd","password":"correct horse","name":"A","provider":"apple"}"#, "/provider", "invalid"),
    ]

    @Test(arguments: bad)
    func `is rejected with the member that is wrong`(body: String, pointer: String, code: String) async throws {
        try await withSelfService([rules(requiresName: true)]) { service in
            let reply = await service.register(body)
            let error = try #require(reply.response.failure?.bodyErrors.first, "\(reply.summary)")
            #expect(reply.status == 400 && error.pointer == pointer && error.code.rawValue == code)
            #expect(try await service.mails().isEmpty)
        }
    }

    @Test func `without verification needs a password`() async throws {
        try await withSelfService([rules(verifies: false)]) { service in
            for (body, code) in [
                (#"{"email":"a@b.cd"}"#, "missing"), (#"{"email":"a@b.cd","password":"x"}"#, "too_short"),
            ] {
                let error = await service.register(body).response.failure?.bodyErrors.first
                #expect(error?.pointer == "/password" && error?.code.rawValue == code)
            }
        }
    }

    @Test func `names its provider if there are several`() async throws {
        let providers = [rules(registers: false), rules(), rules(verifies: false)]
        try await withSelfService(providers) { service in
            let none = await service.register("{\(ada)}")
            #expect(none.response.failure?.bodyErrors.first?.pointer == "/provider")
            #expect(await service.register(#"{\#(ada),"provider":"password"}"#).status == 400)
            #expect(await service.register(#"{\#(ada),"provider":"password2"}"#).status == 202)
            #expect(
                await service.register(#"{"email":"b@b.cd","password":"correct horse","provider":"password3"}"#).status
                    == 204)
            #expect(providers.map(\.hashed.value.count) == [0, 0, 1])
        }
    }

    @Test func `may be a form`() async throws {
        try await withSelfService([rules()]) { service in
            let body = Array("email=ada%40example.com&password=correct+horse".utf8)
            let reply = await service.stand.send("POST", "/auth/register", type: Stand.form, body)
            #expect(reply.status == 202)
        }
    }

    @Test func `has a budget for each network`() async throws {
        try await withSelfService([rules(verifies: false)]) { service in
            for index in 0..<60 {
                let body = #"{"email":"u\#(index)@example.com","password":"correct horse"}"#
                #expect(await service.register(body).status == 204)
            }
            let reply = await service.register("{\(ada)}")
            #expect(reply.summary == "429 throttled signin.budget_exceeded")
            // Another kind of request has a budget of its own.
            #expect(await service.stand.post("/auth/password/forgot", #"{"email":"a@b.cd"}"#).status == 202)
        }
    }
}

@Suite struct `A forgotten password` {
    private func link(_ service: SelfServiceStand) async throws -> String {
        let reply = await service.stand.post("/auth/password/forgot", #"{"email":"Ada@example.com","locale":"en"}"#)
        #expect(reply.status == 202)
        return try #require(try await service.mails().last?.token)
    }

    private func addAda(_ service: SelfServiceStand) async throws {
        let record = UserRecord(name: "ada", key: "ada@example.com", hash: "old", isDisabled: false)
        try await service.accounts.addUser(record, at: UnixTime(seconds: 0))
    }

    @Test func `is replaced with the token of a mail, which ends all sessions`() async throws {
        let providers = [rules(), rules(resets: false)]
        try await withSelfService(providers) { service in
            try await addAda(service)
            for provider in ["password", "password2"] {
                for user in ["ada@example.com", "bob@example.com"] { _ = try await service.stand.login(provider, user) }
            }
            let before = service.stand.sessions.entries.count
            let token = try await link(service)
            let mail = try #require(try await service.mails().last)
            #expect(mail.template == .passwordReset && mail.address == "ada@example.com" && mail.link == nil)
            let reply = await service.stand.post(
                "/auth/password/reset", #"{"token":"\#(token)","new_password":"battery staple"}"#)
            #expect(reply.status == 204)
            #expect(try await service.user("ada@example.com")?.hash == "hash of battery staple")
            // The record is that of all providers, whose throttles are cleared.
            #expect(before == 4 && service.stand.sessions.entries.count == 2)
            #expect(service.stand.sessions.entries.allSatisfy { $0.identity.providerSubject == "bob@example.com" })
            #expect(providers.map(\.resets.value) == [["ada@example.com"], ["ada@example.com"]])
            #expect(service.stand.invalidations.value == 2)
            #expect(service.stand.lines.text.contains("reason=password_changed"))
            let again = await service.stand.post(
                "/auth/password/reset", #"{"token":"\#(token)","new_password":"battery staple"}"#)
            #expect(again.summary == "401 credential_invalid signin.bad_link")
        }
    }

    @Test func `looks the same for an unknown address, which gets no mail`() async throws {
        try await withSelfService([rules()]) { service in
            try await addAda(service)
            _ = try await link(service)
            service.stand.time.advance(seconds: 60)
            let known = await service.stand.post("/auth/password/forgot", #"{"email":"ada@example.com"}"#)
            let unknown = await service.stand.post("/auth/password/forgot", #"{"email":"bob@example.com"}"#)
            #expect(known.status == unknown.status && known.response.body == unknown.response.body)
            #expect(try await service.mails().map(\.address) == ["ada@example.com", "ada@example.com"])
        }
    }

    @Test func `is mailed three times an hour because of one network, and the response is the same`() async throws {
        try await withSelfService([rules()]) { service in
            try await addAda(service)
            for address in ["ada@example.com", "bob@example.com"] {
                for _ in 0..<6 {
                    let reply = await service.forget(address)
                    #expect(reply.status == 202 && reply.object["expires_in"]?.int64 == 1800)
                    service.stand.time.advance(seconds: 30)
                }
            }
            #expect(try await service.mails().count == 3)
            #expect(service.stand.lines.text.contains("mail withheld code=signin.too_many_mails"))
            // A stranger does not keep the owner from a mail.
            #expect(await service.forget("ada@example.com", from: 1).status == 202)
            #expect(try await service.mails().count == 4)
        }
    }

    @Test func `keeps its token if the new password is rejected`() async throws {
        try await withSelfService([rules()]) { service in
            try await addAda(service)
            let token = try await link(service)
            let bad = await service.stand.post("/auth/password/reset", #"{"token":"\#(token)","new_password":"x"}"#)
            #expect(bad.status == 400 && bad.response.failure?.bodyErrors.first?.pointer == "/new_password")
            let good = await service.stand.post(
                "/auth/password/reset", #"{"token":"\#(token)","new_password":"battery staple"}"#)
            #expect(good.status == 204)
        }
    }

    @Test func `is not replaced with a token of another purpose, a late one or an invented one`() async throws {
        let provider = rules()
        try await withSelfService([provider]) { service in
            _ = await service.register("{\(ada)}")
            let other = try #require(try await service.mails().last?.token)
            try await addAda(service)
            service.stand.time.advance(seconds: 1)
            let late = try await link(service)
            let mixed = await service.stand.post(
                "/auth/password/reset", #"{"token":"\#(other)","new_password":"battery staple"}"#)
            #expect(mixed.summary == "401 credential_invalid signin.bad_link")
            #expect(await service.stand.post("/auth/register/verify", #"{"token":"\#(late)"}"#).status == 401)
            service.stand.time.advance(seconds: 1800)
            let before = provider.hashed.value.count
            for token in [
                other, late, "mlt_" + String(repeating: "A", count: 43), "x", "", String(repeating: "a", count: 5000),
            ] {
                let reply = await service.stand.post(
                    "/auth/password/reset", #"{"token":"\#(token)","new_password":"battery staple"}"#)
                #expect(reply.summary == "401 credential_invalid signin.bad_link")
            }
            // None of them costs a hash.
            #expect(provider.hashed.value.count == before)
            #expect(try await service.user("ada@example.com")?.hash == "old")
            #expect(await service.stand.post("/auth/register/verify", #"{"token":"\#(late)"}"#).status == 401)
        }
    }

    @Test func `needs a token and a password`() async throws {
        try await withSelfService([rules()]) { service in
            for (body, pointer) in [("{}", "/token"), (#"{"token":1}"#, "/token")] {
                for path in ["/auth/password/reset", "/auth/register/verify"] {
                    let reply = await service.stand.post(path, body)
                    #expect(reply.response.failure?.bodyErrors.first?.pointer == pointer)
                }
            }
            for body in [#"{"email":"x"}"#, #"{"email":"a@b.cd","locale":"_"}"#] {
                #expect(await service.stand.post("/auth/password/forgot", body).status == 400)
            }
        }
    }

    @Test func `has a budget for tokens that are not valid`() async throws {
        try await withSelfService([rules()]) { service in
            for _ in 0..<60 {
                #expect(await service.stand.post("/auth/register/verify", #"{"token":"x"}"#).status == 401)
            }
            let reply = await service.stand.post("/auth/password/reset", #"{"token":"x","new_password":"y"}"#)
            #expect(reply.summary == "429 throttled signin.budget_exceeded")
        }
    }
}

@Suite struct `Self-service` {
    @Test(arguments: ["/auth/register", "/auth/register/verify", "/auth/password/forgot", "/auth/password/reset"])
    func `is not there unless a provider allows it`(path: String) async throws {
        let off = "404 no_route signin.unknown_endpoint"
        #expect(await Stand().post(path, "{}").summary == off)
        try await withSelfService([rules(registers: path.contains("password"), resets: path.contains("register"))]) {
            #expect(await $0.stand.post(path, "{}").summary == off)
        }
        var elsewhere = rules()
        elsewhere.storesRecords = false
        try await withSelfService([elsewhere]) { #expect(await $0.stand.post(path, "{}").summary == off) }
    }

    @Test func `is unavailable while the account store is`() async throws {
        try await withSelfService([rules()]) { service in
            await service.accounts.shutdown()
            for (path, body) in [
                ("register", "{\(ada)}"), ("password/forgot", #"{"email":"a@b.cd"}"#),
                ("register/verify", #"{"token":"mlt_\#(String(repeating: "A", count: 43))"}"#),
            ] {
                let reply = await service.stand.post("/auth/\(path)", body)
                #expect(reply.status == 503 && reply.code == "auth_unavailable")
            }
        }
    }
}
