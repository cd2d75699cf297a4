import AppleProvider
import MartletConfig
import MartletCore
import MartletJSON
import MartletProvider
import MartletTesting
import Testing

@Suite struct MigrationTests {
    private static let token = #"{"access_token":"m1","token_type":"Bearer","expires_in":3600}"#

    private static func response(
        _ status: Int, _ body: String, retryAfter: Duration? = nil
    ) -> Result<HTTPCallResponse, HTTPCallError> {
        .success(HTTPCallResponse(status: status, body: Array(body.utf8), retryAfter: retryAfter))
    }

    private static func export(_ bench: Bench) async -> Result<String, AuthenticationError> {
        do throws(AuthenticationError) {
            return .success(try await bench.provider.exportUser("sub-1", to: "NEWTEAM123", until: .never))
        } catch {
            return .failure(error)
        }
    }

    // MARK: Calls

    @Test func `the old team exports, the new team imports, with one access token`() async throws {
        let apple = ScriptedApple([
            Self.response(200, Self.token), Self.response(200, #"{"transfer_sub":"760417.r1"}"#),
            Self.response(200, #"{"sub":"001901.n","email":"a@privaterelay.appleid.com","is_private_email":true}"#),
        ])
        let bench = try Bench.withKey(apple)
        try await bench.provider.prepareTransfers(until: .never)
        #expect(try await Self.export(bench).get() == "760417.r1")
        #expect(try await bench.provider.importUser("760417.r1", until: .never) == "001901.n")
        let calls = apple.received
        #expect(
            calls.map(\.url).map { $0.split(separator: "/").last } == [
                "token", "usermigrationinfo", "usermigrationinfo",
            ])
        #expect(calls[0].fields["grant_type"] == "client_credentials" && calls[0].fields["scope"] == "user.migration")
        #expect(calls[1].fields["sub"] == "sub-1" && calls[1].fields["target"] == "NEWTEAM123")
        #expect(calls[2].fields["transfer_sub"] == "760417.r1" && calls[2].fields["sub"] == nil)
        for call in calls.dropFirst() {
            #expect(call.headers["Authorization"] == "Bearer m1" && call.headers["User-Agent"]?.isEmpty == false)
            #expect(call.fields["client_id"] == "com.example.app" && call.fields["client_secret"] != nil)
            #expect(!call.isRepeatable)
        }
        #expect(bench.provider.team == "ABCDE12345" && bench.provider.transferRate == RequestRate(count: 5))
    }

    @Test func `an access token that has expired is renewed once`() async throws {
        let refused = Self.response(400, #"{"error":"invalid_grant"}"#)
        let second = Self.response(200, #"{"access_token":"m2","token_type":"bearer"}"#)
        let apple = ScriptedApple([
            Self.response(200, Self.token), refused, second, Self.response(200, #"{"transfer_sub":"t"}"#),
        ])
        #expect(try await Self.export(Bench.withKey(apple)).get() == "t")
        #expect(apple.received.compactMap { $0.headers["Authorization"] } == ["Bearer m1", "Bearer m2"])
        let stubborn = ScriptedApple([Self.response(200, Self.token), refused, second, refused])
        let outcome = await Self.export(try Bench.withKey(stubborn))
        guard case .failure(let error) = outcome else { return #expect(Bool(false)) }
        #expect(error.code == "apple.invalid_grant" && error.disposition == .rejected)
        #expect(stubborn.received.count == 4)
    }

    @Test func `callers who come together share one request for a token`() async throws {
        let transfers = (0..<8).map { Self.response(200, #"{"transfer_sub":"t\#($0)"}"#) }
        let apple = ScriptedApple([Self.response(200, Self.token)] + transfers)
        let bench = try Bench.withKey(apple)
        let outcomes = await withTaskGroup(of: Result<String, AuthenticationError>.self) { group in
            for _ in 0..<8 { group.addTask { await Self.export(bench) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(outcomes.allSatisfy { (try? $0.get()) != nil })
        #expect(apple.received.count { $0.url.hasSuffix("/auth/token") } == 1)
    }

    /// What Apple may respond with, and what becomes of the run.
    struct Case: Sendable, CustomTestStringConvertible {
        let status: Int
        let body: String
        let code: ErrorCode
        let disposition: AuthenticationError.Disposition

        init(_ status: Int, _ body: String, _ code: ErrorCode, _ disposition: AuthenticationError.Disposition) {
            (self.status, self.body, self.code, self.disposition) = (status, body, code, disposition)
        }

        var testDescription: String { "\(status) \(body.prefix(40))" }
    }

    static let cases: [Case] = [
        .init(400, #"{"error":"invalid_request"}"#, "apple.invalid_request", .rejected),
        .init(400, #"{"error":"invalid_client"}"#, "apple.invalid_client", .denied),
        .init(400, #"{"error":"unauthorized_client"}"#, "apple.unauthorized_client", .denied),
        .init(400, #"{"error":"unsupported_grant_type"}"#, "apple.unsupported_grant_type", .denied),
        .init(400, #"{"error":"invalid_scope"}"#, "apple.invalid_scope", .denied),
        .init(400, #"{"error":"new"}"#, "apple.api_bad_response", .unavailable),
        .init(400, "<html>", "apple.api_bad_response", .unavailable),
        .init(401, "", "apple.api_bad_response", .unavailable),
        .init(429, "", "apple.api_throttled", .throttled),
        .init(500, "<html>", "apple.api_bad_response", .unavailable),
        .init(200, "", "apple.api_bad_response", .unavailable),
        .init(200, "<html>", "apple.api_bad_response", .unavailable),
        .init(200, "[]", "apple.api_bad_response", .unavailable),
        .init(200, "{}", "apple.api_bad_response", .unavailable),
        .init(200, #"{"transfer_sub":""}"#, "apple.api_bad_response", .unavailable),
        .init(200, #"{"transfer_sub":7}"#, "apple.api_bad_response", .unavailable),
        .init(200, #"{"transfer_sub":"a\u0000b"}"#, "apple.api_bad_response", .unavailable),
        .init(200, #"{"sub":"only"}"#, "apple.api_bad_response", .unavailable),
        .init(200, #"{"transfer_sub":"a","transfer_sub":"b"}"#, "apple.api_bad_response", .unavailable),
        .init(
            200, #"{"transfer_sub":""# + String(repeating: "x", count: 256) + #""}"#, "apple.api_bad_response",
            .unavailable),
        .init(200, String(repeating: "[", count: 60_000), "apple.api_bad_response", .unavailable),
    ]

    @Test(arguments: cases) func `a response without a name moves no user`(_ row: Case) async throws {
        let apple = ScriptedApple([Self.response(200, Self.token), Self.response(row.status, row.body)])
        guard case .failure(let error) = await Self.export(try Bench.withKey(apple)) else {
            return #expect(Bool(false), "accepted")
        }
        #expect(error.code == row.code && error.disposition == row.disposition)
    }

    @Test func `Retry-After, no response, and no access token`() async throws {
        let paused = ScriptedApple([
            Self.response(200, Self.token), Self.response(429, "", retryAfter: .seconds(17)),
        ])
        guard case .failure(let error) = await Self.export(try Bench.withKey(paused)) else {
            return #expect(Bool(false))
        }
        #expect(error.disposition == .throttled && error.retryAfter == .seconds(17))
        let silent = ScriptedApple([Self.response(200, Self.token), ScriptedApple.noResponse])
        #expect(await Self.export(try Bench.withKey(silent)).failure?.code == "apple.api_unreachable")
        for body in [
            "{}", #"{"access_token":"a b","token_type":"Bearer"}"#, #"{"access_token":"a","token_type":"mac"}"#,
        ] {
            let apple = ScriptedApple([Self.response(200, body)])
            #expect(await Self.export(try Bench.withKey(apple)).failure?.code == "apple.api_bad_response")
        }
        let wrong = ScriptedApple([Self.response(400, #"{"error":"invalid_request"}"#)])
        #expect(await Self.export(try Bench.withKey(wrong)).failure?.disposition == .denied, "no user was named")
        #expect(await Self.export(try Bench()).failure?.disposition == .denied, "no key")
    }

    // MARK: Tokens

    private static func migration(
        from team: String = "OLDTEAM123", until day: String
    ) throws -> [(String, Bench.Value)] {
        try Bench.developerLines([
            ("migration", .block([("from_team", .text(team)), ("until", .text(day))]))
        ])
    }

    private static func transfer(until day: String, at now: Int64 = Bench.now) async throws -> IdentityTransfer? {
        let bench = try Bench(migration(until: day))
        let token = try Bench.token { $0.claims["transfer_sub"] = JSONText(string: "760417.r1") }
        return bench.provider.transfer(of: try await bench.identity(token), at: UnixTime(seconds: now))
    }

    @Test func `transfer_sub names a transfer, to the end of the last day`() async throws {
        // Bench.now is 2027-01-15T08:00:00Z.
        let expected = IdentityTransfer(transferSubject: "760417.r1", fromTeam: "OLDTEAM123", toTeam: "ABCDE12345")
        #expect(try await Self.transfer(until: "2027-01-15") == expected)
        #expect(try await Self.transfer(until: "2027-01-14") == nil)
        let end: Int64 = 1_800_057_600
        #expect(try await Self.transfer(until: "2027-01-15", at: end - 1) != nil)
        #expect(try await Self.transfer(until: "2027-01-15", at: end) == nil)
        #expect(try await Self.transfer(until: "2024-02-29", at: 1_709_251_199) != nil)
        #expect(try await Self.transfer(until: "2024-02-29", at: 1_709_251_200) == nil)
        #expect(try await Self.transfer(until: "1970-01-01", at: 86_399) != nil)
        let without = try Bench.withKey(ScriptedApple([]))
        let token = try Bench.token { $0.claims["transfer_sub"] = JSONText(string: "760417.r1") }
        #expect(!without.provider.recognizesTransfers)
        #expect(without.provider.transfer(of: try await without.identity(token), at: Bench.context.now) == nil)
        let plain = try Bench(Self.migration(until: "2027-03-01"))
        let none = try await plain.identity(try Bench.token())
        #expect(plain.provider.recognizesTransfers && plain.provider.transfer(of: none, at: Bench.context.now) == nil)
    }

    // MARK: Configuration

    @Test func `the block is decoded strictly, and errors have a position`() throws {
        func rejection(_ lines: [(String, Bench.Value)]) -> Bench.ConfigurationRejected? {
            do {
                _ = try Bench(lines)
                return nil
            } catch {
                return error as? Bench.ConfigurationRejected
            }
        }
        #expect(rejection(try Self.migration(until: "2027-03-01")) == nil)
        for day in [
            "2027-3-1", "2027-02-29", "2027-13-01", "2027-00-10", "2027-04-31", "1969-12-31", "soon", "20270301",
            "2027-03-01T00:00:00Z", "2027-03-00", "", "２０２７-03-01", "-027-03-01",
        ] {
            let error = rejection(try Self.migration(until: day))
            #expect(error?.codes == ["config.bad_value"], "\(day): \(error?.text ?? "accepted")")
            #expect(error?.text.contains("config.yaml:1:1") == true)
        }
        for team in ["oldteam123", "OLDTEAM12", "OLDTEAM1234", "ABCDE12345"] {
            let error = rejection(try Self.migration(from: team, until: "2027-03-01"))
            #expect(error?.codes == ["config.bad_value"], "\(team): \(error?.text ?? "accepted")")
        }
        let (from, until) = (("from_team", Bench.Value.text("OLDTEAM123")), ("until", Bench.Value.text("2027-03-01")))
        let blocks: [([(String, Bench.Value)], ErrorCode)] = [
            ([from], "config.missing_key"), ([until], "config.missing_key"), ([], "config.missing_key"),
            ([from, until, ("to_team", .text("ABCDE12345"))], "config.unknown_key"),
        ]
        for (block, code) in blocks {
            let error = rejection(try Bench.developerLines([("migration", .block(block))]))
            #expect(error?.codes.contains(code) == true, "\(block.map(\.0)): \(error?.text ?? "accepted")")
        }
        let keyless = rejection([("migration", .block([from, until]))])
        #expect(keyless?.codes == ["config.missing_key"] && keyless?.text.contains("needs a key") == true)
    }
}

extension Result where Failure == AuthenticationError {
    fileprivate var failure: AuthenticationError? { if case .failure(let error) = self { error } else { nil } }
}
