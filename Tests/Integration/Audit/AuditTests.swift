import Foundation
import Glibc
import MartletTesting
import Testing

/// The audit log of a running gateway.
@Suite(.timeLimit(.minutes(3))) struct `The audit log` {
    /// A folder with a key, and the path of the log.
    private struct LogFolder {
        let folder: TemporaryFolder
        var log: String { folder.file("audit.log") }
        var key: String { folder.file("audit.pem") }

        init() throws {
            folder = try TemporaryFolder()
            let made = try martlet("keygen", "audit", "--out", key)
            guard made.ending == .exited(0) else { throw TestFailure("no key: \(made)") }
        }

        func block(_ destinations: String) -> String { "audit: { \(destinations), key_file: \"\(key)\" }\n" }
        var block: String { block("file: \"\(log)\"") }

        func verify(_ files: String..., options: [String] = []) throws -> CommandResult {
            let names = files.isEmpty ? [log] : files
            return try run(
                try Executable.martlet(), ["audit", "verify"] + names + ["--key", key, "--json"] + options)
        }

        /// The lines of a file.
        func lines(_ file: String? = nil) -> [[String: Any]] {
            let text = (try? String(contentsOfFile: file ?? log, encoding: .utf8)) ?? ""
            return text.split(separator: "\n").compactMap {
                try? JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
            }
        }

        /// The events of a kind.
        func events(_ kind: String, _ file: String? = nil) -> [[String: Any]] {
            lines(file).filter { $0["event"] as? String == kind }
        }

        func waitFor(_ kind: String, count: Int = 1) throws -> [[String: Any]] {
            try waitUntil("the log has \(count) of \(kind)") { events(kind).count >= count }
            return events(kind)
        }
    }

    private static func martlet(_ arguments: String...) throws -> CommandResult {
        try run(try Executable.martlet(), arguments)
    }

    private func lost(_ gateway: Gateway) throws -> Int {
        let text = try gateway.askAdmin("/metrics").text
        let line = text.split(separator: "\n").first { $0.hasPrefix("martlet_audit_events_lost_total ") }
        return try #require(line.flatMap { Int($0.split(separator: " ").last ?? "") })
    }

    @Test func `says who did what, from where, and what came of it`() throws {
        let logs = try LogFolder()
        var last: Tokens?
        try withSignIn(more: "sessions: { refresh_reuse_grace: 0s }\n" + logs.block) { stage in
            let login = try stage.post(
                "/auth/login/password", ["username": "alice", "password": SignInStage.password])
            let tokens = try Tokens(login)
            let wrong = try stage.post("/auth/login/password", ["username": "alice", "password": "wrong"])
            #expect(wrong.status == 401)
            _ = try Tokens(try stage.post("/auth/refresh", ["refresh_token": tokens.refresh]))
            #expect(try stage.post("/auth/refresh", ["refresh_token": tokens.refresh]).status == 401)
            let second = try stage.passwordLogin()
            let linked = try stage.post(
                "/auth/link/apple", bearer: second.access, ["identity_token": stage.apple.token()])
            #expect(linked.status == 204, "\(linked)")
            #expect(try stage.send("DELETE", "/auth/link/apple", bearer: second.access).status == 204)
            #expect(try stage.send("POST", "/auth/logout", bearer: second.access).status == 204)
            #expect(try stage.gateway.get("/a", bearer(second.access)).status == 401)
            last = second
            let logins = try logs.waitFor("login", count: 3)
            #expect(logins.map { $0["outcome"] as? String } == ["success", "rejected", "success"])
            let first = try #require(logins.first)
            #expect(first["subject"] as? String == tokens.subject && first["session_id"] as? String == tokens.session)
            #expect(first["provider"] as? String == "password" && first["address"] as? String == "127.0.0.1")
            #expect(first["request_id"] as? String == login["X-Request-Id"])
            #expect(logins[1]["reason"] as? String == "password.wrong_password", "\(logins[1])")
            let theft = try #require(try logs.waitFor("refresh_theft").first)
            #expect(theft["subject"] as? String == tokens.subject && theft["session_id"] as? String == tokens.session)
            #expect(try logs.waitFor("link").first?["provider"] as? String == "apple")
            #expect(try logs.waitFor("unlink").first?["subject"] as? String == second.subject)
            #expect(try logs.waitFor("revoke").last?["detail"] as? String == "logout")
        }
        let rejections = logs.events("rejection")
        let counted = rejections.filter { $0["reason"] as? String == "session.unknown" }
        #expect(!counted.isEmpty && counted.allSatisfy { ($0["count"] as? Int ?? 0) > 0 }, "\(rejections)")
        let text = try String(contentsOfFile: logs.log, encoding: .utf8)
        #expect(!text.contains("mat_") && !text.contains("mrt_") && !text.contains(SignInStage.password))
        #expect(last.map { !text.contains($0.access) } == true)
        #expect(logs.lines().last?["cause"] as? String == "end")
        let verified = try logs.verify()
        #expect(verified.ending == .exited(0) && verified.output.contains("\"ok\":true"), "\(verified)")
    }

    @Test func `goes on over restarts, reloads and a moved file`() throws {
        let logs = try LogFolder()
        let upstream = try ScriptedUpstream()
        var config = GatewayConfig(endpoints: [upstream.url])
        config.listen = "- address: 127.0.0.1:\(try refusedPort())"
        config.admin = "address: 127.0.0.1:\(try refusedPort())\nsocket: unix:admin.sock"
        config.more = logs.block
        let old = logs.folder.file("audit.log.1")
        try withMartlet(config.text) { gateway throws in
            #expect(try gateway.get("/a").status == 200)
            try gateway.reload(config.text + "nonsense: 1\n")
            let failed = try #require(try logs.waitFor("reload").first)
            #expect(failed["outcome"] as? String == "failed" && failed["reason"] as? String == "config.unknown_key")
            #expect(failed["trigger"] as? String == "signal" && failed["digest"] == nil)
            try gateway.reload(config.text)
            let reloaded = try #require(try logs.waitFor("reload", count: 2).last)
            #expect(reloaded["outcome"] as? String == "success")
            let status = try gateway.askAdmin("/status").object["configuration"] as? [String: Any]
            #expect(reloaded["digest"] as? String == status?["digest"] as? String && reloaded["reason"] == nil)
            let response = try HTTPClient(to: gateway.admin).exchange(
                "POST", "/reload", [("Origin", "http://evil.example")])
            let change = try #require(try logs.waitFor("admin_change").first)
            #expect(change["path"] as? String == "/reload" && change["status"] as? Int == response.status)
            #expect(change["credential"] == nil)
            let asked = try HTTPClient(to: gateway.operators).exchange("POST", "/reload")
            #expect(asked.status == 200)
            let last = try #require(try logs.waitFor("reload", count: 3).last)
            #expect(last["trigger"] as? String == "admin" && last["address"] as? String == "unix")
            #expect(last["request_id"] as? String == asked["X-Request-Id"])
            #expect(try logs.waitFor("admin_change", count: 2).last?["credential"] as? String == "local")
            // The same key is no change; another one is.
            #expect(logs.events("key_rotation").isEmpty)
            try FileManager.default.moveItem(atPath: logs.log, toPath: old)
            gateway.process.kill(SIGUSR1)
            try waitUntil("the new file has its head") { logs.lines().first?["opens"] as? Bool == true }
            try gateway.reload(config.text)
            _ = try logs.waitFor("reload")
        }
        try withMartlet(config.text) { gateway throws in #expect(try gateway.get("/a").status == 200) }
        #expect(logs.lines().contains { $0["cause"] as? String == "resume" })
        #expect(logs.lines(old).last?["cause"] as? String == "rotation")
        #expect(try logs.verify(old, logs.log).ending == .exited(0))
        #expect(try logs.verify(logs.log).ending == .exited(0))
        let wrong = try logs.verify(logs.log, old)
        #expect(wrong.ending == .exited(65) && wrong.output.contains("not_continued"), "\(wrong)")
    }

    @Test func `has the keys that an issuer has changed`() throws {
        let logs = try LogFolder()
        let more = "jwks: { unknown_kid_cooldown: 1s }\n" + logs.block
        try withAppleGateway(more: more) { gateway, _, apple throws in
            #expect(try gateway.get("/closed", bearer(apple.token())).status == 200)
            let next = try SigningKey("NEXT")
            apple.setKeys([next])
            let token = try Token(kid: next.identifier).signed(by: next)
            try waitUntil("the new key is used") { try gateway.get("/closed", bearer(token)).status == 200 }
            let event = try #require(try logs.waitFor("key_rotation").first)
            #expect(event["key_kind"] as? String == "issuer" && event["provider"] as? String == "apple")
            #expect(event["url"] as? String == apple.url)
            #expect(event["added"] as? [String] == ["NEXT"] && event["removed"] as? [String] == [apple.key.identifier])
            #expect(logs.events("key_rotation").count == 1)
        }
        #expect(try logs.verify().ending == .exited(0))
    }

    @Test func `names a subject in a path as elsewhere, and has no token that was taken for an id`() throws {
        let logs = try LogFolder()
        var config = GatewayConfig(endpoints: ["builtin:echo"])
        config.more = logs.block + "sessions: {}\n"
        try withMartlet(config.text) { gateway throws in
            let client = try HTTPClient(to: gateway.operators)
            _ = try client.exchange("DELETE", "/subjects/password%3Ajoe%40example.com/sessions")
            _ = try client.exchange("DELETE", "/sessions/mat_0123456789")
            _ = try client.exchange("DELETE", "/sessions/ses_0123456789abcdef")
            let paths = try logs.waitFor("admin_change", count: 3).map { $0["path"] as? String ?? "" }
            #expect(paths[0].hasPrefix("/subjects/password:sha256-") && paths[0].hasSuffix("/sessions"), "\(paths)")
            #expect(paths[1...] == ["/sessions/-", "/sessions/ses_0123456789abcdef"], "\(paths)")
        }
    }

    @Test func `has the request of a deletion before its end`() throws {
        let logs = try LogFolder()
        try withSignIn(more: logs.block) { stage in
            let tokens = try stage.passwordLogin()
            #expect(try stage.send("DELETE", "/auth/account", bearer: tokens.access).status == 202)
            let deletions = try logs.waitFor("deletion", count: 2)
            #expect(deletions.map { $0["detail"] as? String } == ["requested", "done"])
            #expect(deletions.allSatisfy { $0["subject"] as? String == tokens.subject })
        }
    }

    @Test func `is found out where it was tampered with`() throws {
        let logs = try LogFolder()
        var config = GatewayConfig(endpoints: ["builtin:echo"])
        config.more = logs.block
        for _ in 0..<2 { try withMartlet(config.text) { gateway throws in _ = try gateway.get("/a") } }
        let text = try String(contentsOfFile: logs.log, encoding: .utf8)
        let lines = text.split(separator: "\n").map(String.init)
        #expect(lines.count == 4)
        let head = try #require(try logs.verify().output.split(separator: "\"last_head\":\"").last?.prefix(64))
        #expect(try logs.verify(options: ["--head", String(head)]).ending == .exited(0))
        let tampered: [(String, [String], Int)] = [
            ("removed", [lines[0], lines[2], lines[3]], 2),
            ("reordered", [lines[0], lines[2], lines[1], lines[3]], 2),
            ("bad_signature", [lines[0], lines[1].replacingOccurrences(of: "\"end\"", with: "\"key\""), lines[2]], 2),
            ("duplicated", [lines[0], lines[1], lines[1], lines[2]], 3),
            ("missing_start", [lines[1], lines[2]], 1),
            ("empty", [], 0),
        ]
        for (reason, content, line) in tampered {
            let file = try logs.folder.write(content.map { $0 + "\n" }.joined(), to: "tampered.log")
            let result = try logs.verify(file)
            #expect(result.ending == .exited(65), "\(reason): \(result)")
            #expect(result.output.contains("\"line\":\(line),\"reason\":\"\(reason)\""), "\(result)")
        }
        let short = try logs.folder.write(lines[..<2].joined(separator: "\n") + "\n", to: "tampered.log")
        #expect(try logs.verify(short).ending == .exited(0))
        let missing = try logs.verify(short, options: ["--head", String(head)])
        #expect(missing.ending == .exited(65) && missing.output.contains("head_missing"), "\(missing)")
        let other = logs.folder.file("other.pem")
        _ = try Self.martlet("keygen", "audit", "--out", other)
        let untrusted = try Self.martlet("audit", "verify", logs.log, "--key", other)
        #expect(untrusted.ending == .exited(65) && untrusted.output.contains("unknown_key"), "\(untrusted)")
        let path = try logs.folder.write(config.text, to: "config.yaml")
        let configured = try Self.martlet("audit", "verify", logs.log, "--config", path)
        #expect(configured.ending == .exited(0) && configured.output.contains("ok: 4 lines, 4 heads"), "\(configured)")
        let none = try Self.martlet("audit", "verify", logs.folder.file("none"), "--key", logs.key)
        #expect(none.ending == .exited(69))
        #expect(try Self.martlet("audit", "verify").ending == .exited(64))
        #expect(try Self.martlet("audit", "verify", logs.log, "--key", path).ending == .exited(78))
    }

    @Test func `is verified with the key of the configuration that the environment names`() throws {
        let logs = try LogFolder()
        var config = GatewayConfig(endpoints: ["builtin:echo"])
        config.more = logs.block
        try withMartlet(config.text) { gateway throws in #expect(try gateway.get("/a").status == 200) }
        let path = try logs.folder.write(config.text, to: "named.yaml")
        let arguments = ["audit", "verify", logs.log]
        let named = try run(Executable.martlet(), arguments, environment: ["MARTLET_CONFIG": path])
        #expect(named.ending == .exited(0) && named.errorOutput.isEmpty, "\(named)")
        let missing = try run(Executable.martlet(), arguments, environment: ["MARTLET_CONFIG": "/nowhere.yaml"])
        #expect(missing.ending == .exited(78), "\(missing)")
    }

    @Test func `has one writer`() throws {
        let logs = try LogFolder()
        var config = GatewayConfig(endpoints: ["builtin:echo"])
        config.more = logs.block
        try withMartlet(config.text) { _ throws in
            let path = try TemporaryFolder()
            let second = try run(
                try Executable.martlet(), ["run", "--config", try path.write(config.text, to: "config.yaml")])
            #expect(second.ending == .exited(69) && second.description.contains("audit.file_in_use"), "\(second)")
        }
    }

    @Test func `never holds a request up`() throws {
        let logs = try LogFolder()
        let hanging = try ScriptedUpstream { _ in pause(.seconds(8)) }
        try withSignIn(more: logs.block("file: /dev/full, webhook: \"\(hanging.url)/audit\"")) { stage in
            for _ in 0..<5 { _ = try stage.passwordLogin() }
            try waitUntil("the lost lines are counted") { try lost(stage.gateway) >= 5 }
        }
    }

    @Test func `reaches syslog and a webhook, each with a chain of its own`() throws {
        let logs = try LogFolder()
        let refused = Box(1)
        let receiver = try ScriptedUpstream { exchange in
            let isRefused = refused.withLock { left in
                left -= 1
                return left >= 0
            }
            try exchange.respond(200, body: isRefused ? "<html>Sign in to the network</html>" : "")
        }
        let syslog = try DatagramReceiver()
        try withSignIn(
            more: logs.block(
                "file: \"\(logs.log)\", syslog: \"udp://127.0.0.1:\(syslog.port)\", "
                    + "webhook: \"\(receiver.url)/audit\"")
        ) { stage in
            let tokens = try stage.passwordLogin()
            _ = try logs.waitFor("login")
            try waitUntil("the webhook has the login") {
                receiver.requests.contains { $0.text.contains("\"subject\":\"\(tokens.subject)\"") }
            }
        }
        let posted = receiver.requests.dropFirst().map(\.text).joined()
        let file = try logs.folder.write(posted, to: "posted.log")
        #expect(try logs.verify(file).ending == .exited(0), "\(posted)")
        let datagrams = syslog.received()
        #expect(datagrams.count >= 3)
        let header = #/^<85>1 [0-9T:.-]+Z \S+ martlet [0-9]+ audit - /#
        #expect(datagrams.allSatisfy { $0.firstMatch(of: header) != nil }, "\(datagrams)")
        let messages = datagrams.map { String($0.replacing(header, with: "")) + "\n" }.joined()
        #expect(try logs.verify(try logs.folder.write(messages, to: "syslog.log")).ending == .exited(0))
    }

    @Test func `survives destinations that are unavailable`() throws {
        let logs = try LogFolder()
        let port = try refusedPort()
        let more = logs.block(
            "syslog: \"unix:\(logs.folder.file("nothing"))\", "
                + "webhook: { url: \"http://127.0.0.1:\(port)/\", timeout: 1s }")
        try withSignIn(more: more) { stage in
            _ = try stage.passwordLogin()
            try waitUntil("the lost lines are counted") { try lost(stage.gateway) >= 1 }
        }
    }
}

private func martlet(_ arguments: String...) throws -> CommandResult {
    try run(try Executable.martlet(), arguments)
}

/// A UDP socket that keeps what it gets.
private final class DatagramReceiver {
    private let socket: Int32
    let port: UInt16

    init() throws {
        socket = Glibc.socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let socket = socket
        let isBound = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(socket, $0, length) == 0 && getsockname(socket, $0, &length) == 0
            }
        }
        guard isBound else { throw TestFailure("no UDP socket") }
        port = UInt16(bigEndian: address.sin_port)
    }

    deinit { close(socket) }

    /// Everything that has arrived.
    func received() -> [String] {
        var texts: [String] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = unsafe recv(socket, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            guard count > 0 else { return texts }
            texts.append(String(decoding: buffer.prefix(count), as: UTF8.self))
        }
    }
}
