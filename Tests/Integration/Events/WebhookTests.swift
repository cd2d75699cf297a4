import Foundation
import MartletTesting
import Testing

@Suite(.timeLimit(.minutes(2))) struct WebhookTests {
    @Test func `delivers a new account as a signed CloudEvent, once`() throws {
        let stage = try WebhookStage()
        let gateway = try stage.gateway()
        let subject = try stage.login(1, at: gateway)
        try waitUntil("the event arrives") { stage.receiver.requests.contains { !$0.body.isEmpty } }
        try stage.login(1, at: gateway)
        try waitUntil("it leaves the outbox") { try stage.isEmpty() }
        let request = try stage.receiver.onlyRequest()
        #expect(request.startLine == "POST /hook?a=b HTTP/1.1")
        expectSigned(request)
        #expect(request.member("type") == "dev.martlet.account.created" && request.member("subject") == subject)
        #expect(request.member("specversion") == "1.0" && request.member("source") == "martlet")
        #expect((request.object["data"] as? [String: String]) == ["provider": "apple"])
        try gateway.stop()
    }

    @Test(arguments: ["status", "html", "redirect", "close", "hang", "endless"])
    func `a receiver that fails holds up no login, and gets every event later`(how: String) throws {
        let stage = try WebhookStage { exchange in
            switch how {
            case "status": try exchange.respond(503)
            case "html": try exchange.respond(500, [("Content-Type", "text/html")], body: "<html>")
            case "redirect": try exchange.respond(308, [("Location", "/elsewhere")])
            case "close": throw TestFailure("closed")
            case "hang": _ = exchange.waitForEnd()
            default:
                try exchange.send("HTTP/1.1 200 OK\r\n\r\n")
                while true { try exchange.send(String(repeating: "x", count: 65536)) }
            }
        }
        let gateway = try stage.gateway("timeout: 500ms")
        let start = Stopwatch()
        let subjects = try (0..<5).map { try stage.login($0, at: gateway) }
        #expect(start.undisturbed < .seconds(5))
        try waitUntil("an attempt is made") { !stage.receiver.requests.isEmpty }
        let confirmed = Box<Set<String>>([])
        stage.receiver.respond { exchange in
            let subject = exchange.request.member("subject") ?? ""
            confirmed.withLock { _ = $0.insert(subject) }
            try exchange.respond(200, body: "<html>thanks</html>")
        }
        try waitUntil("every event arrives", within: .seconds(20)) { try stage.isEmpty() }
        #expect(confirmed.value == Set(subjects))
        #expect(stage.receiver.requests.allSatisfy { $0.target == "/hook?a=b" })
        try gateway.stop()
    }

    /// Killed between a failed attempt and the retry, while a request is in progress, and after the response but
    /// probably before the outbox knows it.
    @Test(arguments: ["failed", "sent", "confirmed"])
    func `what was not delivered when the gateway was killed is delivered after its next start`(step: String) throws {
        let stage = try WebhookStage { exchange in
            switch step {
            case "failed": try exchange.respond(503)
            case "sent": _ = exchange.waitForEnd()
            default: try exchange.respond(204)
            }
        }
        var gateway = try stage.gateway()
        let subjects = try (0..<3).map { try stage.login($0, at: gateway) }
        try waitUntil("an attempt is made") { !stage.receiver.requests.isEmpty }
        gateway.process.kill(SIGKILL)
        _ = try gateway.process.wait(within: .seconds(10))
        let before = Set(stage.receiver.requests.compactMap { $0["webhook-id"] })
        stage.receiver.respond { try $0.respond(204) }
        gateway = try stage.gateway()
        try waitUntil("every event arrives", within: .seconds(30)) { try stage.isEmpty() }
        #expect(Set(stage.subjects) == Set(subjects))
        let all = Set(stage.receiver.requests.compactMap { $0["webhook-id"] })
        #expect(before.isSubset(of: all) && all.count == 3)
        for request in stage.receiver.requests { expectSigned(request) }
        try gateway.stop()
    }

    @Test func `another instance takes over from one that was killed within fifteen seconds`() throws {
        let stage = try WebhookStage()
        let gateways = try stage.holderAndOther()
        try stage.login(0, at: gateways[1])
        try waitUntil("the first event arrives") { !stage.subjects.isEmpty }
        gateways[0].process.kill(SIGKILL)
        _ = try gateways[0].process.wait(within: .seconds(10))
        let start = Stopwatch()
        let subject = try stage.login(1, at: gateways[1])
        try waitUntil("the second event arrives", within: .seconds(20)) { stage.subjects.contains(subject) }
        #expect(start.undisturbed < .seconds(15))
        try gateways[1].stop()
    }

    @Test func `another instance takes over immediately from one that stops`() throws {
        let stage = try WebhookStage()
        let gateways = try stage.holderAndOther()
        try stage.login(0, at: gateways[1])
        try waitUntil("the first event arrives") { !stage.subjects.isEmpty }
        try gateways[0].stop()
        let start = Stopwatch()
        let subject = try stage.login(1, at: gateways[1])
        try waitUntil("the second event arrives", within: .seconds(20)) { stage.subjects.contains(subject) }
        #expect(start.undisturbed < .seconds(8))
        try gateways[1].stop()
    }

    @Test func `gives an event up at max_age, lists it and sends it again`() throws {
        let stage = try WebhookStage { try $0.respond(410) }
        let gateway = try stage.gateway("max_age: 1s")
        let subject = try stage.login(1, at: gateway)
        try waitUntil("it is given up", within: .seconds(20)) {
            try stage.events("list", "--state", "dead").output.contains(subject)
        }
        try waitUntil("it is logged") {
            gateway.log.contains { $0["event"] == "webhook delivery given up" && $0["webhook"] == "backend" }
        }
        let listed = try stage.events("list", "--hook", "backend", "--json")
        let entries = try JSONSerialization.jsonObject(with: Data(listed.output.utf8)) as? [[String: Any]] ?? []
        let entry = try #require(entries.first, "\(listed)")
        #expect(entries.count == 1 && entry["state"] as? String == "dead", "\(listed)")
        #expect(entry["error"] as? String == "events.status: status 410")
        #expect(try stage.events("list", "--hook", "other").output.isEmpty)
        #expect(try stage.events("list", "--state", "open").output.isEmpty)
        let id = try #require(entry["id"] as? String)
        let before = stage.receiver.requests.count
        stage.receiver.respond { try $0.respond(204) }
        let resent = try stage.events("resend", id.lowercased())
        #expect(resent.ending == .exited(0) && resent.output == "event \(id) is due for backend\n", "\(resent)")
        try waitUntil("it arrives") { stage.receiver.requests.count > before }
        try waitUntil("it leaves the outbox") { try stage.events("list", "--json").output == "[]\n" }
        #expect(try stage.events("resend", id).ending == .exited(69))
        try gateway.stop()
    }

    @Test func `a reload begins and ends deliveries`() throws {
        let stage = try WebhookStage()
        let gateway = try stage.gateway(hasWebhook: false)
        try stage.login(0, at: gateway)
        try gateway.reload(stage.configuration())
        try waitUntil("it is reloaded") { gateway.log.contains { $0["event"] == "configuration reloaded" } }
        let subject = try stage.login(1, at: gateway)
        try waitUntil("the event arrives") { !stage.subjects.isEmpty }
        #expect(stage.subjects == [subject])
        try gateway.reload(stage.configuration(hasWebhook: false))
        try waitUntil("it is reloaded") {
            gateway.log.filter { $0["event"] == "configuration reloaded" }.count == 2
        }
        try stage.login(2, at: gateway)
        #expect(try stage.isEmpty() && stage.receiver.requests.count == 1)
        try gateway.stop()
    }

    @Test func `wrong commands are exit 64`() throws {
        let stage = try WebhookStage()
        try stage.folder.write(stage.configuration(), to: "config.yaml")
        for words in [[], ["lst"], ["list", "x"], ["resend"], ["resend", "x"], ["list", "--state", "gone"]] {
            let result = try run(
                try Executable.martlet(), ["events"] + words + ["--config", stage.folder.file("config.yaml")])
            #expect(result.ending == .exited(64), "\(words): \(result)")
        }
        #expect(try stage.events("list").ending == .exited(69))
    }
}
