import Foundation
import MartletTesting
import Testing

/// What a reload does to tunnels and long responses in progress: what the new file would reject ends as if revoked.
@Suite struct `A reload and what is under way` {
    private static let script: ScriptedUpstream.Script = { try `Ends of credentials`.events($0) }

    /// A new configuration, and when it is in force.
    private static func reload(_ gateway: Gateway, _ change: (String) -> String) throws {
        let path = gateway.folder.path + "/config.yaml"
        let changed = change(try String(contentsOfFile: path, encoding: .utf8))
        let before = gateway.log.count { $0["event"] == "configuration reloaded" }
        try gateway.reload(changed)
        try waitUntil("it is in force") {
            gateway.log.count { $0["event"] == "configuration reloaded" } > before
        }
    }

    @Test func `a removed audience ends its tunnels and streams, and no others`() throws {
        let echo = EchoScript()
        let script: ScriptedUpstream.Script = {
            try ($0.request["Upgrade"] == nil ? Self.script : echo.script)($0)
        }
        try withAppleGateway(script: script) { gateway, _, apple throws in
            let web = bearer(try apple.token { $0.claims["aud"] = "\"com.example.web\"" })
            let app = bearer(try apple.token())
            let (ended, kept) = try (gateway.webSocket("/ended", web), gateway.webSocket("/kept", app))
            let stream = try `Ends of credentials`.openEvents(gateway, web)
            let keptStream = try `Ends of credentials`.openEvents(gateway, app)
            try ended.expectEcho("hello")
            pause(.milliseconds(900))
            try Self.reload(gateway) { $0.replacing(", com.example.web", with: "") }
            let start = Stopwatch()
            try ended.expectClose(4401, "session revoked")
            try `Ends of credentials`.expectCut(stream)
            #expect(start.undisturbed < .seconds(1.5))
            try waitUntil("the upstream sees the end") { !echo.ends.value.isEmpty }
            #expect(echo.ends.value.first??.status == 1001)
            try kept.expectEcho("still here")
            #expect(keptStream.socket.isSilent(for: .milliseconds(300)))
            #expect(try gateway.record(of: "/ended")["reason"] == "auth.credential_revoked")
            // One that is younger than a long exchange is evaluated as soon as it is one.
            let young = try gateway.webSocket("/young", app)
            try Self.reload(gateway) { $0.replacing("com.example.app", with: "com.example.other") }
            try young.expectClose(4401, "session revoked")
            try kept.expectClose(4401, "session revoked")
        }
    }

    struct Change: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let old: String
        let new: String
    }

    static let changes = [
        Change(testDescription: "the route is gone", old: "path: /x }", new: "path: /y }"),
        Change(testDescription: "another method", old: "path: /x }", new: "path: /x, methods: [POST] }"),
        Change(
            testDescription: "a condition that does not hold", old: "path: /x }",
            new: "path: /x }, authorize: [{ claim: email, equals: other@example.com }]"),
        Change(
            testDescription: "no direct credentials", old: "path: /x }, auth: { providers: [apple] }",
            new: "path: /x }, auth: { providers: [apple], credentials: [session] }"),
        Change(
            testDescription: "a public route that is no more", old: "path: /public }, auth: none",
            new: "path: /public }, auth: { providers: [apple] }"),
    ]

    @Test(arguments: changes) func `what the new file would refuse ends, all else goes on`(_ change: Change) throws {
        let routes = """
            - { name: x, match: { path: /x }, auth: { providers: [apple] }, upstream: api }
            - { name: public, match: { path: /public }, auth: none, upstream: api }
            - { name: kept, match: { path: /kept }, auth: { providers: [apple] }, upstream: api }
            - { name: never, match: { path: /never }, auth: { providers: [apple] }, upstream: api, upgrade: { close_on_expiry: false } }
            """
        try withAppleGateway(routes: routes, script: EchoScript().script) { gateway, _, apple throws in
            let fields = bearer(try apple.token())
            let isPublic = change.old.contains("/public")
            let ended = try isPublic ? gateway.webSocket("/public") : gateway.webSocket("/x", fields)
            let kept = try [("/kept", fields), ("/never", fields), isPublic ? ("/x", fields) : ("/public", [])]
                .map { try gateway.webSocket($0, $1) }
            pause(.milliseconds(900))
            // The same configuration once more ends nothing.
            try Self.reload(gateway) { $0 }
            pause(.milliseconds(600))
            try ended.expectEcho("still here")
            try Self.reload(gateway) { $0.replacing(change.old, with: change.new) }
            try ended.expectClose(4401, "session revoked")
            pause(.milliseconds(400))
            for end in kept { try end.expectEcho("still here") }
        }
    }

    @Test func `sessions are evaluated by the provider that made them, pairs of name and password always end`() throws {
        let routes =
            "- { name: all, match: { path: /** }, auth: { providers: [apple, password] }, upstream: api }"
        try withSignIn(routes: routes) { stage in
            stage.upstream.respond(with: EchoScript().script)
            let (password, apple) = try (stage.passwordLogin(), stage.appleLogin())
            let ended = try stage.gateway.webSocket("/a", bearer(password.access))
            let kept = try stage.gateway.webSocket("/b", bearer(apple.access))
            let pair = Data("alice:\(SignInStage.password)".utf8).base64EncodedString()
            let basic = try stage.gateway.webSocket("/c", [("Authorization", "Basic \(pair)")])
            pause(.milliseconds(900))
            try Self.reload(stage.gateway) { $0 }
            try basic.expectClose(4401, "session revoked")
            try ended.expectEcho("still here")
            try Self.reload(stage.gateway) { $0.replacing("providers: [apple, password]", with: "providers: [apple]") }
            try ended.expectClose(4401, "session revoked")
            try kept.expectEcho("still here")
            try Self.reload(stage.gateway) {
                $0.replacing("providers: [apple]", with: "providers: [apple], credentials: [direct]")
            }
            try kept.expectClose(4401, "session revoked")
        }
    }
}
