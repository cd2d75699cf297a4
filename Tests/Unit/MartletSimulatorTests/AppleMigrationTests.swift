import MartletCore
import MartletJSON
import MartletSimulator
import Testing

@Suite struct `Apple simulator's transfers` {
    /// Two teams, of which the new one gets the app.
    private struct Teams {
        static let new = "NEWTEAM001"

        let stage: AppleStage
        let recipient: DeveloperKeyPair

        init() throws {
            stage = try AppleStage()
            recipient = try stage.simulator.makeDeveloperKey(teamID: Self.new, keyID: "NEWKEY0001")
        }

        var old: DeveloperKeyPair { stage.developer }

        func accept(_ more: String = "") async -> AppleStage.Reply {
            let body = #"{"from_team": "\#(old.key.teamID)", "to_team": "\#(Self.new)"\#(more)}"#
            return await stage.order("/simulator/transfer", body)
        }

        func accessToken(_ pair: DeveloperKeyPair, client: String = AppleStage.app) async throws -> String {
            let reply = await stage.call(
                "/auth/token",
                [
                    ("client_id", client), ("client_secret", try pair.clientSecret(clientID: client, at: stage.now)),
                    ("grant_type", "client_credentials"), ("scope", "user.migration"),
                ])
            return try #require(reply["access_token"])
        }

        func move(
            _ pair: DeveloperKeyPair, _ parameters: [(String, String)], authorization: String?
        ) async throws -> AppleStage.Reply {
            let secret = try pair.clientSecret(clientID: AppleStage.app, at: stage.now)
            let body = AppleStage.encoded([("client_id", AppleStage.app), ("client_secret", secret)] + parameters)
            return await stage.send(
                "POST", "/auth/usermigrationinfo", body,
                fields: [("Content-Type", AppleStage.form), ("User-Agent", "test")]
                    + (authorization.map { [("Authorization", $0)] } ?? []))
        }

        func export(_ subject: String = AppleStage.subject, to target: String = new) async throws -> AppleStage.Reply {
            let bearer = "Bearer \(try await accessToken(old))"
            return try await move(old, [("sub", subject), ("target", target)], authorization: bearer)
        }

        func take(_ transferSubject: String) async throws -> AppleStage.Reply {
            let bearer = "bearer \(try await accessToken(recipient))"
            return try await move(recipient, [("transfer_sub", transferSubject)], authorization: bearer)
        }
    }

    @Test func `a user moves: the old team's name, the name for the way, the new team's name`() async throws {
        let teams = try Teams()
        _ = try await teams.stage.logIn()
        #expect(await teams.accept().object["open"] == true)
        let exported = try await teams.export()
        #expect(exported.status == 200 && exported.object.count == 1, "\(exported.text)")
        let transferSubject = try #require(exported["transfer_sub"])
        #expect(try await teams.export()["transfer_sub"] == transferSubject, "the same each time")
        let imported = try await teams.take(transferSubject)
        let subject = try #require(imported["sub"])
        #expect(subject != AppleStage.subject && imported.object["is_private_email"] == true)
        #expect(imported["email"]?.hasSuffix("@privaterelay.appleid.com") == true)
        let named = await teams.accept(#", "subject": "\#(AppleStage.subject)""#)
        #expect(named["sub"] == subject && named["transfer_sub"] == transferSubject)
    }

    @Test func `tokens of the new team name the transfer, for sixty days`() async throws {
        let teams = try Teams()
        let stage = teams.stage
        _ = try await stage.logIn(#", "email": "ada@example.com""#)
        _ = await teams.accept()
        let transferSubject = try #require(try await teams.export()["transfer_sub"])
        let imported = try await teams.take(transferSubject)
        #expect(imported["email"] == nil && imported.object["is_private_email"] == nil, "no relay was used")
        let subject = try #require(imported["sub"])
        let login = try await stage.logIn(subject: subject)
        #expect(try stage.claims(login["identity_token"])["transfer_sub"] == .string(transferSubject))
        let old = try await stage.logIn()
        #expect(try stage.claims(old["identity_token"])["transfer_sub"] == nil)
        stage.advance(60 * 86_400)
        let late = try await stage.logIn(subject: subject)
        #expect(try stage.claims(late["identity_token"])["transfer_sub"] == nil)
        #expect(try await teams.take(transferSubject).error == "invalid_request")
        #expect(try await teams.export().error == "invalid_request")
    }

    @Test func `only in an open transfer, of a known user, in the right direction`() async throws {
        let teams = try Teams()
        _ = try await teams.stage.logIn()
        #expect(try await teams.export().error == "invalid_request", "no transfer")
        _ = await teams.accept()
        #expect(try await teams.export("nobody").error == "invalid_request")
        #expect(try await teams.export(to: "OTHERTEAM1").error == "invalid_request")
        #expect(try await teams.take("made-up").error == "invalid_request")
        let transferSubject = try #require(try await teams.export()["transfer_sub"])
        let bearer = "Bearer \(try await teams.accessToken(teams.old))"
        let own = try await teams.move(teams.old, [("transfer_sub", transferSubject)], authorization: bearer)
        #expect(own.error == "invalid_request", "the old team is not the recipient")
        for parameters in [
            [], [("sub", AppleStage.subject)], [("target", Teams.new)],
            [("sub", "a"), ("target", "b"), ("transfer_sub", "c")], [("sub", "a"), ("target", "b"), ("extra", "c")],
        ] {
            let reply = try await teams.move(teams.old, parameters, authorization: bearer)
            #expect(reply.error == "invalid_request", "\(parameters)")
        }
    }

    @Test func `only with an access token of the client for migrations`() async throws {
        let teams = try Teams()
        let login = try await teams.stage.exchange(try await teams.stage.code())
        _ = await teams.accept()
        let good = try await teams.accessToken(teams.old)
        let parameters = [("sub", AppleStage.subject), ("target", Teams.new)]
        let bad = [
            "Bearer made-up", "Bearer \(try #require(login["access_token"]))", "Bearer ", "Bearer  \(good)",
            "Bearer \(try await teams.accessToken(teams.recipient))",
            "Bearer \(try await teams.accessToken(teams.old, client: "com.example.web"))",
        ]
        for authorization in bad {
            let reply = try await teams.move(teams.old, parameters, authorization: authorization)
            #expect(reply.error == "invalid_grant", "\(authorization)")
        }
        for authorization in [nil, good, "Basic \(good)"] {
            let reply = try await teams.move(teams.old, parameters, authorization: authorization)
            #expect(reply.error == "invalid_request", "\(authorization ?? "none")")
        }
        #expect(try await teams.move(teams.old, parameters, authorization: "Bearer \(good)").status == 200)
        teams.stage.advance(3600)
        let late = try await teams.move(teams.old, parameters, authorization: "Bearer \(good)")
        #expect(late.error == "invalid_grant")
    }

    static let invalid = [
        "{}", #"{"from_team": "OLDTEAM001"}"#, #"{"from_team": "OLDTEAM001", "to_team": "OLDTEAM001"}"#,
        #"{"from_team": "OLDTEAM001", "to_team": "new"}"#,
        #"{"from_team": "OLDTEAM001", "to_team": "NEWTEAM001", "accepted_at": -1}"#,
        #"{"from_team": "OLDTEAM001", "to_team": "NEWTEAM001", "accepted_at": 9223372036854775807}"#,
        #"{"from_team": "OLDTEAM001", "to_team": "NEWTEAM001", "subject": 1}"#,
    ]

    @Test(arguments: invalid) func `an invalid transfer is rejected`(_ body: String) async throws {
        #expect(await (try AppleStage()).order("/simulator/transfer", body).status == 400)
    }

    @Test func `a transfer that was accepted long ago is closed, and their number is limited`() async throws {
        let stage = try AppleStage()
        func accept(_ number: Int) async -> AppleStage.Reply {
            let body =
                #"{"from_team": "OLDTEAM0\#(number)", "to_team": "NEWTEAM001", "accepted_at": 1, "subject": "me"}"#
            return await stage.order("/simulator/transfer", body)
        }
        for number in 10..<26 {
            let reply = await accept(number)
            #expect(reply.object["open"] == false && reply.object["sub"] == .null)
        }
        #expect(await accept(25).status == 200)
        #expect(await accept(26).status == 400)
    }
}
