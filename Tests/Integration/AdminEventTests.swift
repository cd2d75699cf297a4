import Glibc
import MartletTesting
import Testing

/// `GET /events` and `POST /log/level` of the admin listener.
@Suite struct `Admin events` {
    /// Reads the events of a gateway while a body makes requests.
    private static func events(
        _ gateway: Gateway, _ query: String = "", _ body: () throws -> Void
    ) throws -> String {
        let folder = try TemporaryFolder()
        let reader = try ChildProcess(
            Executable.named("curl"), ["-sN", "--max-time", "30", "http://\(gateway.admin)/events\(query)"],
            output: folder)
        try waitUntil("the stream begins") { reader.output.contains(":\n\n") }
        try body()
        try waitUntil("the last request is shown") { reader.output.contains("/last") }
        reader.kill(SIGKILL)
        _ = try reader.wait()
        return reader.output
    }

    @Test func `show requests as they finish, and those alone that a reader wants`() throws {
        try withAppleGateway { gateway, _, apple throws in
            let token = bearer(try apple.token())
            let all = try Self.events(gateway) { () throws in
                // One connection, so that one event loop has them in this order.
                let client = try gateway.connect()
                for (path, fields, status) in [
                    ("/closed/a", token, 200), ("/closed/b?secret=1", [], 401), ("/public/last", [], 200),
                ] { #expect(try client.exchange("GET", path, fields).status == status) }
            }
            let lines = all.split(separator: "\n").filter { $0.hasPrefix("data: ") }.compactMap {
                LogLine(String($0.dropFirst(6)))
            }
            #expect(lines.map { $0["path"] } == ["/closed/a", "/closed/b", "/public/last"], "\(all)")
            #expect(lines.map { $0["status"] } == ["200", "401", "200"])
            #expect(lines.first?["provider"] == "apple" && lines.first?["subject"]?.isEmpty == false)
            #expect(!all.contains("secret"))
            let rejected = try Self.events(gateway, "?reason=auth.credential_missing&route=closed") { () throws in
                #expect(try gateway.get("/closed/a", token).status == 200)
                #expect(try gateway.get("/public/x").status == 200)
                #expect(try gateway.get("/closed/last").status == 401)
            }
            #expect(rejected.split(separator: "\n").count { $0.hasPrefix("data: ") } == 1, "\(rejected)")
        }
    }

    @Test func `more than a hundred in a second are counted`() throws {
        try withOpenGateway { gateway, _ throws in
            let client = try gateway.connect()
            let shown = try Self.events(gateway) { () throws in
                for _ in 0..<400 {
                    let status = try client.exchange("GET", "/a").status
                    #expect(status == 200)
                }
                pause(.milliseconds(2200))
                #expect(try client.exchange("GET", "/last").status == 200)
            }
            #expect(shown.contains("event: dropped\ndata: {\"count\":"), "\(shown.suffix(400))")
        }
    }

    @Test func `are followed by the command until the gateway ends`() throws {
        try withAppleGateway { gateway, _, _ throws in
            let (folder, admin) = (try TemporaryFolder(), ["--admin", "http://\(gateway.admin)"])
            func tail(_ name: String, _ options: [String]) throws -> ChildProcess {
                try ChildProcess(Executable.martlet(), ["tail"] + options + admin, output: folder, name: name)
            }
            let all = try tail("all", [])
            let rejected = try tail("rejected", ["--reason", "auth.credential_missing", "--json"])
            try waitUntil("both show the same request") { () throws in
                _ = try (gateway.get("/public/a"), gateway.get("/closed"))
                // Each loop tells of its own requests, in any order.
                return ["GET /closed", "GET /public/a"].allSatisfy(all.output.contains)
                    && rejected.output.contains("/closed")
            }
            #expect(all.output.contains("  200  GET /public/a  "), "\(all.output)")
            let lines = rejected.output.split(separator: "\n").compactMap { LogLine(String($0)) }
            #expect(
                !lines.isEmpty && lines.allSatisfy { $0["reason"] == "auth.credential_missing" }, "\(rejected.output)")
            try gateway.stop()
            for reader in [all, rejected] {
                #expect(try reader.wait() == .exited(0) && reader.errorOutput.isEmpty, "\(reader.errorOutput)")
            }
            let none = try run(Executable.martlet(), ["tail"] + admin)
            #expect(none.ending == .exited(69) && none.output.isEmpty, "\(none)")
        }
    }

    @Test func `have a hundred readers, and close the connections of more`() throws {
        try withOpenGateway { gateway, _ throws in
            var readers: [HTTPClient] = []
            for _ in 0..<100 {
                let reader = try HTTPClient(to: gateway.admin)
                try reader.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
                readers.append(reader)
            }
            try waitUntil("all have one") { () throws in
                let more = try HTTPClient(to: gateway.admin)
                try more.send("GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
                guard try more.response(to: "HEAD").status == 503 else {
                    readers.append(more)
                    return false
                }
                return more.socket.isEnded(within: .seconds(2))
            }
            #expect(readers.count >= 100)
            #expect(try gateway.askAdmin("/livez").status == 200)
        }
    }

    @Test func `reject parameters that do not exist`() throws {
        try withOpenGateway { gateway, _ throws in
            for query in ["x=1", "route=a&route=b", "route=%zz"] {
                expectRejection(try gateway.askAdmin("/events?\(query)"), 400, "request_invalid", query)
            }
        }
    }

    @Test func `the log level is changed, by the command too, for a while`() throws {
        try withOpenGateway { gateway, _ throws in
            let admin = ["--admin", "\(gateway.operators)"]
            let set = try run(Executable.martlet(), ["log-level", "warning", "--for", "1h"] + admin)
            #expect(set.ending == .exited(0) && set.output == "warning for 1 h 0 min\n", "\(set)")
            try waitUntil("it is logged") { gateway.log.contains { $0["event"] == "log level changed" } }
            let client = try HTTPClient(to: gateway.operators)
            let type = ("Content-Type", "application/json")
            for body in ["", "{}", #"{"level":"loud"}"#, #"{"level":"info","for":"0s"}"#, #"{"level":"info","x":1}"#] {
                expectRejection(
                    try client.exchange("POST", "/log/level", [type], body: Array(body.utf8)), 400, "request_invalid",
                    body)
            }
            let back = try client.exchange("POST", "/log/level", [type], body: Array(#"{"level":"debug"}"#.utf8))
            #expect(back.status == 200 && back.text == "{\"level\":\"debug\",\"seconds\":null}\n")
            let error = try client.exchange("POST", "/log/level", [type], body: Array(#"{"level":"error"}"#.utf8))
            #expect(error.status == 200)
            try waitUntil("the log says why it is silent") {
                gateway.log.contains { $0["event"] == "log level changed" && $0["before"] == "debug" }
            }
            let wrong = try run(Executable.martlet(), ["log-level", "loud"] + admin)
            #expect(wrong.ending == .exited(64) && wrong.output.isEmpty, "\(wrong)")
            let status = try run(Executable.martlet(), ["status"] + admin)
            #expect(status.ending == .exited(0) && status.output.contains("open\t"), "\(status)")
        }
    }
}
