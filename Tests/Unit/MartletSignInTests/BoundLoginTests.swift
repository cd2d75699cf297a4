import MartletConfig
import MartletCore
import MartletJSON
import MartletProvider
import MartletSessionTesting
import MartletTesting
import Testing

@testable import MartletResponder
@testable import MartletSession
@testable import MartletSignIn

/// The endpoints with sessions that are bound to keys of their clients.
private struct BoundStand {
    static let ours = ScriptedProofs.ours
    static let other = ScriptedProofs.other

    let stand: Stand
    let proofs = ScriptedProofs()
    private let serial = Box(0)

    init(_ setting: SessionBinding, sessions: (any SessionBackend)? = nil) {
        let proofs = proofs
        stand = Stand { setup in
            setup.proofs = proofs
            setup.configuration.dpop = setting
            setup.sessions = SessionStore(
                policy: .sample, backend: sessions ?? MemorySessions(), clock: setup.clock, onRevoked: { _ in },
                onChanged: { _ in })
        }
    }

    /// A new proof of a key.
    func proof(_ key: String) -> String {
        let id = serial.withLock { serial in
            serial += 1
            return serial
        }
        return "\(key) \(id)"
    }

    /// Sends a request with the given proofs.
    func send(
        _ method: String, _ target: String, _ body: String? = nil, token: String? = nil, _ proofs: [String] = []
    ) async -> Stand.Reply {
        await stand.send(
            method, target, type: body.map { _ in Stand.json }, Array((body ?? "").utf8),
            fields: (token.map { [("Authorization", $0)] } ?? []) + proofs.map { ("DPoP", $0) })
    }

    func login(_ proofs: [String], _ body: String = #"{"proof":"anna"}"#) async -> Stand.Reply {
        await send("POST", "/auth/login/apple", body, proofs)
    }

    func refresh(_ token: String, _ proofs: [String]) async -> Stand.Reply {
        await send("POST", "/auth/refresh", #"{"refresh_token":"\#(token)"}"#, proofs)
    }

    /// How often the provider was asked.
    var logins: Int { stand.apple.script.value.logins }
}

@Suite struct `A login that proves a key` {
    private static let ours = ScriptedProofs.ours

    private static let rules: [(SessionBinding, Bool, ProofRule, ProofRule)] = [
        (.off, false, .ignored, .ignored), (.off, true, .ignored, .verifiedIfBound),
        (.optional, false, .ignored, .ignored), (.optional, true, .verified, .verified),
        (.required, false, .missing, .ignored), (.required, true, .verified, .verified),
    ]

    @Test(arguments: rules)
    func `is asked for what the configuration says`(
        setting: SessionBinding, isPresented: Bool, login: ProofRule, refresh: ProofRule
    ) {
        #expect(ProofRule(creatingBy: setting, isPresented: isPresented) == login)
        #expect(ProofRule(refreshingBy: setting, isPresented: isPresented) == refresh)
    }

    private static let kinds: [(SessionBinding, [String], String)] = [
        (.off, [], "Bearer"), (.off, ["x"], "Bearer"), (.off, ["x", "y"], "Bearer"),
        (.optional, [], "Bearer"), (.optional, [ours + " a"], "DPoP"), (.required, [ours + " a"], "DPoP"),
    ]

    @Test(arguments: kinds)
    func `gets a session of its kind`(setting: SessionBinding, proofs: [String], type: String) async throws {
        let stand = BoundStand(setting)
        let reply = await stand.login(proofs)
        #expect(reply.status == 200 && reply["token_type"] == type)
        #expect(stand.proofs.marked.count == (type == "DPoP" ? 1 : 0))
        let access = try #require(reply["access_token"])
        let token = type == "DPoP" ? "DPoP \(access)" : "Bearer \(access)"
        let list = await stand.send("GET", "/auth/sessions", token: token, [stand.proof(Self.ours)])
        let entry = list.object["sessions"]?.array?.first?.object
        #expect(entry?["bound"] == (type == "DPoP" ? true : nil) && entry?["current"] == true)
    }

    private static let badProofs: [(SessionBinding, [String], String)] = [
        (.required, [], "dpop.missing"), (.required, ["x"], "dpop.malformed"), (.optional, ["x"], "dpop.malformed"),
        (.optional, [ours + " 1", ours + " 2"], "dpop.repeated"), (.optional, [ours + " used"], "dpop.replayed"),
    ]

    @Test(arguments: badProofs)
    func `is rejected before its credential is used`(setting: SessionBinding, proofs: [String], reason: String) async {
        let stand = BoundStand(setting)
        _ = await stand.login([Self.ours + " used"])
        let logins = stand.logins
        let reply = await stand.login(proofs)
        #expect(reply.summary == "401 dpop_proof_invalid \(reason)" && stand.logins == logins)
        #expect(reply.response.failure?.challengeText?.hasPrefix("DPoP realm=") == true)
        #expect(reply.response.failure?.challengeText?.contains("error=\"invalid_dpop_proof\"") == true)
    }

    @Test(arguments: [SessionBinding.optional, .required])
    func `is unavailable while the proof cannot be marked`(setting: SessionBinding) async {
        let stand = BoundStand(setting)
        stand.proofs.isUnavailable = true
        let reply = await stand.login([stand.proof(Self.ours)])
        #expect(reply.summary == "503 auth_unavailable dpop.store_unavailable" && stand.logins == 0)
    }

    @Test func `cannot fill the store by proofs that nothing else limits`() async {
        let stand = BoundStand(.optional)
        var last = await stand.login([stand.proof(Self.ours)], "{}")
        #expect(last.status == 400)
        while last.status == 400, stand.proofs.marked.count < 3000 {
            last = await stand.login([stand.proof(Self.ours)], "{}")
        }
        #expect(last.summary == "429 throttled signin.budget_exceeded" && stand.proofs.marked.count == 2000)
        // Whoever needs no proof is not affected.
        #expect(await stand.login([]).status == 200)
    }

    @Test func `that is repeated gets the same tokens for the same key only`() async {
        let stand = BoundStand(.optional)
        stand.stand.apple.script.withLock {
            $0.repetition = SignIn.Repetition(name: "one", key: Secret([UInt8](repeating: 7, count: 32)))
        }
        let first = await stand.login([stand.proof(Self.ours)])
        let second = await stand.login([stand.proof(Self.ours)])
        #expect(first.status == 200 && second.response.body == first.response.body)
        for proofs in [[], [stand.proof(ScriptedProofs.other)]] {
            #expect(await stand.login(proofs).summary == "401 dpop_proof_invalid dpop.wrong_key")
        }
    }
}

@Suite struct `A session that is bound to a key` {
    private let ours = ScriptedProofs.ours
    private let other = ScriptedProofs.other

    private func refreshToken(_ stand: BoundStand, _ proofs: [String]) async throws -> String {
        try #require(await stand.login(proofs)["refresh_token"])
    }

    @Test(arguments: SessionBinding.allCases)
    func `is refreshed by its key alone`(setting: SessionBinding) async throws {
        let backend = MemorySessions()
        let token = try await refreshToken(BoundStand(.optional, sessions: backend), ["\(ours) login"])
        // It stays bound under whatever setting.
        let stand = BoundStand(setting, sessions: backend)
        #expect(await stand.refresh(token, []).summary == "401 dpop_proof_invalid dpop.missing")
        let wrong = await stand.refresh(token, [stand.proof(other)])
        #expect(wrong.summary == "401 dpop_proof_invalid dpop.wrong_key")
        #expect(await stand.refresh(token, ["x"]).summary == "401 dpop_proof_invalid dpop.malformed")
        stand.proofs.isUnavailable = true
        let unmarked = await stand.refresh(token, [stand.proof(ours)])
        #expect(unmarked.summary == "503 auth_unavailable dpop.store_unavailable")
        stand.proofs.isUnavailable = false
        let used = stand.proof(ours)
        let next = await stand.refresh(token, [used])
        #expect(next.status == 200 && next["token_type"] == "DPoP")
        let second = try #require(next["refresh_token"])
        #expect(await stand.refresh(second, [used]).summary == "401 dpop_proof_invalid dpop.replayed")
        #expect(await stand.refresh(second, [stand.proof(ours)]).status == 200)
    }

    private static let refreshes: [(SessionBinding, Bool, String?)] = [
        (.off, false, "Bearer"), (.off, true, "Bearer"), (.optional, false, "Bearer"), (.optional, true, "DPoP"),
        (.required, false, nil), (.required, true, "DPoP"),
    ]

    @Test(arguments: refreshes)
    func `may have been a bearer's before its refresh`(
        setting: SessionBinding, hasProof: Bool, type: String?
    ) async throws {
        let backend = MemorySessions()
        let first = BoundStand(.off, sessions: backend)
        let login = await first.login([])
        let (token, access) = (try #require(login["refresh_token"]), try #require(login["access_token"]))
        let stand = BoundStand(setting, sessions: backend)
        let reply = await stand.refresh(token, hasProof ? [stand.proof(ours)] : [])
        #expect(reply["token_type"] == type)
        if type == nil { #expect(reply.summary == "401 dpop_proof_invalid dpop.missing") }
        #expect(setting != .off || stand.proofs.marked.isEmpty)
        // What was issued before stays a bearer's.
        #expect(await stand.send("GET", "/auth/session", token: "Bearer \(access)").status == 200)
    }

    @Test func `needs a proof at each endpoint`() async throws {
        let stand = BoundStand(.optional)
        let login = await stand.login([stand.proof(ours)])
        let access = try #require(login["access_token"])
        let endpoints: [(String, String, String?)] = [
            ("GET", "/auth/session", nil), ("GET", "/auth/sessions", nil),
            ("POST", "/auth/link/password", #"{"proof":"a82"}"#),
            ("POST", "/auth/reauthenticate", #"{"provider":"apple","proof":"anna"}"#),
            ("PATCH", "/auth/profile", #"{"name":"Anna"}"#), ("DELETE", "/auth/link/password", nil),
            ("DELETE", "/auth/sessions/ses_0", nil), ("POST", "/auth/logout", nil),
        ]
        for (method, path, body) in endpoints {
            func reason(_ scheme: String, _ proofs: [String]) async -> String? {
                let reply = await stand.send(method, path, body, token: "\(scheme) \(access)", proofs)
                #expect(reply.status == 401 && reply.code == "dpop_proof_invalid", "\(path)")
                #expect(reply.response.failure?.challengeText?.hasPrefix("DPoP ") == true)
                return reply.reason
            }
            #expect(await reason("Bearer", []) == "auth.bound_token")
            #expect(await reason("Bearer", [stand.proof(ours)]) == "auth.bound_token")
            #expect(await reason("DPoP", []) == "dpop.missing")
            #expect(await reason("DPoP", [stand.proof(other)]) == "dpop.wrong_key")
        }
        let before = stand.proofs.marked.count
        for (method, path, body) in endpoints {
            let reply = await stand.send(method, path, body, token: "DPoP \(access)", [stand.proof(ours)])
            #expect(reply.status != 401 && reply.status < 500, "\(path) \(reply.summary)")
        }
        // One proof for each, of this token, also where the session is verified twice.
        #expect(stand.proofs.marked.count == before + endpoints.count)
        #expect(stand.proofs.accessTokens.suffix(endpoints.count).allSatisfy { $0 == access })
        let ended = await stand.send("GET", "/auth/session", token: "DPoP \(access)", [stand.proof(ours)])
        #expect(ended.summary == "401 credential_invalid session.unknown")
    }

    @Test func `is no scheme for a bearer's token`() async throws {
        let stand = BoundStand(.optional)
        let access = try #require(await stand.login([])["access_token"])
        let reply = await stand.send("GET", "/auth/session", token: "DPoP \(access)", [stand.proof(ours)])
        #expect(reply.summary == "401 dpop_proof_invalid auth.token_not_bound" && stand.proofs.marked.isEmpty)
        let other = await stand.send("GET", "/auth/session", token: "Basic YTpi")
        #expect(other.summary == "401 credential_invalid signin.bad_authorization")
    }

    @Test(arguments: ["access_token", "refresh_token"])
    func `may be ended by whoever has a token of it`(member: String) async throws {
        let stand = BoundStand(.required)
        let login = await stand.login([stand.proof(ours)])
        let (token, access) = (try #require(login[member]), try #require(login["access_token"]))
        #expect(await stand.send("POST", "/auth/revoke", #"{"token":"\#(token)"}"#).status == 200)
        let ended = await stand.send("GET", "/auth/session", token: "DPoP \(access)", [stand.proof(ours)])
        #expect(ended.summary == "401 credential_invalid session.unknown")
    }
}
