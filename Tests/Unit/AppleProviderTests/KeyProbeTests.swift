import AppleProvider
import MartletCore
import MartletProvider
import MartletTesting
import Testing

/// What the gateway finds out about the developer's key, and what it logs of Apple's reasons.
@Suite struct `The developer's key` {
    private static func reply(_ status: Int, _ error: String, _ text: String? = nil) -> ScriptedApple {
        let description = text.map { #","error_description":"\#($0)""# } ?? ""
        return ScriptedApple(status, #"{"error":"\#(error)"\#(description)}"#)
    }

    @Test func `is asked about with a made-up code`() async throws {
        let apple = Self.reply(400, "invalid_grant")
        let bench = try Bench.withKey(apple, [("audiences", .list(["com.example.app"]))])
        let outcomes = await bench.provider.checkOnline(until: .never)
        #expect(outcomes.map(\.check) == ["keys", "key KEY1234567"])
        #expect(outcomes.allSatisfy { $0.failure == nil })
        #expect(apple.received.first?.fields["grant_type"] == "authorization_code")
        #expect(bench.provider.health.state == .ready)
    }

    @Test(arguments: [400, 401])
    func `that Apple does not accept is named, and makes the provider degraded`(status: Int) async throws {
        let apple = Self.reply(status, "invalid_client", "no such key")
        let bench = try Bench.withKey(apple, [("audiences", .list(["com.example.app"]))])
        await bench.provider.start()
        #expect(apple.received.count == 1)
        #expect(bench.provider.health.state == .degraded)
        #expect(bench.provider.health.detail.contains("does not accept private_key as key KEY1234567"))
        await bench.provider.shutdown()
        let again = try Bench.withKey(Self.reply(status, "invalid_client", "no such key"))
        let outcome = try #require(await again.provider.checkOnline(until: .never).dropFirst().first)
        #expect(outcome.failure == "apple.invalid_client")
        #expect(outcome.detail.contains("com.example.app: no such key"))
    }

    @Test func `is good again with the first response that says so`() async throws {
        let body = Array(#"{"error":"invalid_client"}"#.utf8)
        let good = Array(#"{"error":"invalid_grant"}"#.utf8)
        let apple = ScriptedApple([
            .success(.init(status: 400, body: body)), .success(.init(status: 503, body: [])),
            .success(.init(status: 400, body: good)),
        ])
        let bench = try Bench.withKey(apple)
        await bench.provider.start()
        #expect(try await bench.login(code: "a").code == "apple.api_bad_response")
        #expect(bench.provider.health.state == .degraded)
        #expect(try await bench.login(code: "b").code == "apple.code_rejected")
        #expect(bench.provider.health.state == .ready)
        await bench.provider.shutdown()
    }

    @Test(arguments: [
        ("The code has expired or has been revoked.", LogLevel.info),
        ("redirect_uri mismatch. The code was not issued to https://x.example.", .warning),
    ])
    func `comes with Apple's reason in the log`(text: String, level: LogLevel) async throws {
        let log = LogRecorder()
        let bench = try Bench.withKey(Self.reply(400, "invalid_grant", text), logger: Logger(log, minimum: .debug))
        #expect(try await bench.login(code: "a").code == "apple.code_rejected")
        let line = try #require(log.lines.first { $0.event == "apple refused a grant" })
        #expect(line.level == level)
        #expect(line["error_description"] == text && line["error"] == "invalid_grant")
        #expect(line["client_id"] == "com.example.app" && line["key_id"] == "KEY1234567")
    }

    @Test func `is not given room for what does not belong into a log`() {
        #expect(IssuerText.make("a\n\u{1B}[2J\\é") == #"a\u{a}\u{1b}[2J\u{5c}\u{e9}"#)
        #expect(IssuerText.make(String(repeating: "x", count: 300)) == String(repeating: "x", count: 256) + "…")
    }
}
