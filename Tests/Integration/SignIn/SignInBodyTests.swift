import Foundation
import MartletTesting
import Testing

/// What a client reads, and the log has, of a body that cannot be taken.
@Suite struct `Refused bodies` {
    private func expect(
        _ response: HTTPMessage, _ pointer: String, _ code: String, _ detail: String,
        at location: SourceLocation = #_sourceLocation
    ) {
        #expect(response.status == 400 && response.member("code") == "request_invalid", sourceLocation: location)
        let errors = response.object["errors"] as? [[String: String]]
        #expect(errors == [["pointer": pointer, "code": code]], sourceLocation: location)
        #expect(response.member("detail") == detail, sourceLocation: location)
        #expect(response["Content-Type"] == "application/problem+json", sourceLocation: location)
    }

    @Test func `name the member, and what was probably meant`() throws {
        try withSignIn { stage in
            expect(
                try stage.post("/auth/login/apple", ["identity-token": "a.b.c"]), "/identity_token", "missing",
                "The member `identity_token` is missing (`identity-token`: did you mean `identity_token`?).")
            let record = try stage.gateway.record(of: "/auth/login/apple")
            #expect(record["reason"] == "signin.missing_member" && record["member"] == "identity_token")
            expect(
                try stage.post("/auth/login/apple", ["identity_token": "a.b.c", "full_name": ["given_name": 7]]),
                "/full_name/given_name", "unknown_type",
                "The member `full_name.given_name` has the wrong type.")
            expect(
                try stage.post("/auth/login/apple", form: "identity_token=a.b.c&user=%7B"), "/user", "invalid",
                "`user` is not the JSON that Apple sends.")
            expect(
                try stage.post("/auth/login/password", form: "username=alice"), "/password", "missing",
                "The member `password` is missing.")
            expect(
                try stage.post("/auth/refresh", ["refresh_token": true]), "/refresh_token", "unknown_type",
                "`refresh_token` must be a string.")
            let tokens = try stage.passwordLogin()
            let change = ["current_password": SignInStage.password, "new_password": "x9-tiny"]
            expect(
                try stage.post("/auth/password", bearer: tokens.access, change), "/new_password", "too_short",
                "`new_password` must have at least 8 characters.")
            #expect(!stage.gateway.everything.contains("a.b.c") && !stage.gateway.everything.contains("x9-tiny"))
        }
    }

    @Test func `are counted as one reason whatever the member`() throws {
        try withSignIn { stage in
            for body in [["username": "alice"], ["password": "x"], [:]] {
                #expect(try stage.post("/auth/login/password", body).status == 400)
            }
            let page = String(decoding: try stage.gateway.askAdmin("/metrics").body, as: UTF8.self)
            #expect(page.contains(#"martlet_proxy_refusals_total{reason="signin.missing_member"} 3"#))
        }
    }

    @Test func `keep their connection`() throws {
        try withSignIn { stage in
            let client = try stage.gateway.connect()
            for _ in 0..<3 {
                let fields = [("Content-Type", "application/json")]
                let response = try client.exchange("POST", "/auth/login/apple", fields, body: Array("{}".utf8))
                #expect(response.status == 400)
            }
        }
    }
}
