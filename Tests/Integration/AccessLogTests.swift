import Foundation
import Glibc
import MartletTesting
import Testing

/// What `log.access` says: which lines there are, what they have, where they go, and what happens when they cannot be
/// written.
@Suite struct `Access log` {
    /// The text of a configuration with this `access` block.
    private static func text(_ access: String, _ config: GatewayConfig) -> String {
        config.text.replacing(
            "log: { level: debug, format: json }", with: "log: { level: debug, format: json, access: { \(access) } }")
    }

    private static func lines(_ path: String) -> [LogLine] {
        let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").compactMap { LogLine(String($0)) }
    }

    private static func has(_ path: String, _ response: HTTPMessage) -> Bool {
        lines(path).contains { $0["request_id"] == response["X-Request-Id"] }
    }

    private static func lost(_ gateway: Gateway, _ file: String) throws -> Int {
        let page = try gateway.askAdmin("/metrics").text
        let prefix = "martlet_log_lines_lost_total{file=\"\(file)\"} "
        let line = page.split(separator: "\n").first { $0.hasPrefix(prefix) }
        return Int(line?.dropFirst(prefix.count) ?? "") ?? -1
    }

    // MARK: The file

    @Test func `what a file has lost is known after a reload has named another one`() throws {
        let upstream = try ScriptedUpstream()
        let folder = try TemporaryFolder()
        let config = GatewayConfig(endpoints: [upstream.url])
        try withMartlet(Self.text("file: /dev/full, probes: false", config)) { gateway throws in
            _ = try gateway.get("/lost")
            try waitUntil("the line is counted") { try Self.lost(gateway, "/dev/full") == 1 }
            try gateway.reload(Self.text("file: \(folder.file("access.log")), probes: false", config))
            try waitUntil("the other file is in use") { try Self.lost(gateway, folder.file("access.log")) == 0 }
            #expect(try Self.lost(gateway, "/dev/full") == 1)
            // The file is closed once its last lines are handed over.
            pause(.seconds(6))
            #expect(try Self.lost(gateway, "/dev/full") == 1)
            try gateway.reload(Self.text("file: /dev/full, probes: false", config))
            try waitUntil("lines are lost again") {
                _ = try gateway.get("/lost")
                return try Self.lost(gateway, "/dev/full") > 1
            }
        }
    }

    @Test func `lines go to the file instead of standard output, and to a new one after mv and SIGUSR1`() throws {
        let upstream = try ScriptedUpstream()
        let folder = try TemporaryFolder()
        let path = folder.file("access.log")
        let config = Self.text("file: \(path), rotate: external", GatewayConfig(endpoints: [upstream.url]))
        try withMartlet(config) { gateway throws in
            let first = try gateway.get("/first")
            try waitUntil("it is in the file") { Self.has(path, first) }
            try FileManager.default.moveItem(atPath: path, toPath: path + ".1")
            let second = try gateway.get("/second")
            try waitUntil("it is in the file that was renamed") { Self.has(path + ".1", second) }
            #expect(!FileManager.default.fileExists(atPath: path))
            gateway.process.kill(SIGUSR1)
            try waitUntil("the log says so") { gateway.log.contains { $0["event"] == "log file reopened" } }
            let third = try gateway.get("/third")
            try waitUntil("it is in the new file") { Self.has(path, third) }
            #expect(Self.lines(path + ".1").count == 2)
            #expect(!gateway.log.contains { $0["event"] == "request" })
            #expect(try Self.lost(gateway, path) == 0)
        }
    }

    @Test func `no line is lost while the file is rotated under load`() throws {
        let upstream = try ScriptedUpstream()
        let folder = try TemporaryFolder()
        let path = folder.file("access.log")
        let config = Self.text("file: \(path), probes: false", GatewayConfig(endpoints: [upstream.url]))
        try withMartlet(config) { gateway throws in
            let client = try gateway.connect()
            var sent = 0
            for rotation in 1...5 {
                for _ in 0..<40 {
                    #expect(try client.exchange("GET", "/a").status == 200)
                    sent += 1
                }
                try FileManager.default.moveItem(atPath: path, toPath: path + ".\(rotation)")
                gateway.process.kill(SIGUSR1)
                for _ in 0..<10 {
                    #expect(try client.exchange("GET", "/a").status == 200)
                    sent += 1
                }
                try waitUntil("there is a new file") { FileManager.default.fileExists(atPath: path) }
            }
            try waitUntil("every line is somewhere") {
                let files = [path] + (1...5).map { "\(path).\($0)" }
                return files.map { Self.lines($0).count }.reduce(0, +) == sent
            }
        }
    }

    @Test func `a reload moves the lines to another file, and back`() throws {
        let upstream = try ScriptedUpstream()
        let folder = try TemporaryFolder()
        let config = try Lifecycle.fixedPorts(upstream, path: "/*")
        let paths = [folder.file("one.log"), folder.file("two.log")]
        try withMartlet(Self.text("file: \(paths[0])", config)) { gateway throws in
            for target in [paths[1], paths[0], ""] {
                try gateway.reload(Self.text(target.isEmpty ? "sample: 100%" : "file: \(target)", config))
                try waitUntil("lines arrive there") {
                    let response = try gateway.get("/a")
                    usleep(100_000)
                    return target.isEmpty
                        ? gateway.log.contains { $0["request_id"] == response["X-Request-Id"] }
                        : Self.has(target, response)
                }
            }
            let probe = try gateway.askAdmin("/livez")
            try waitUntil("the admin listener has followed") {
                gateway.log.contains { $0["request_id"] == probe["X-Request-Id"] }
            }
        }
    }

    @Test func `a file that cannot be opened is an error with its position, at the start and at a reload`() throws {
        let upstream = try ScriptedUpstream()
        let folder = try TemporaryFolder()
        let config = try Lifecycle.fixedPorts(upstream, path: "/*")
        let rows = [("\(folder.path)/none/a.log", "its folder does not exist"), (folder.path, "it is a folder")]
        for (file, reason) in rows {
            try folder.write(Self.text("file: \(file)", config), to: "config.yaml")
            for command in ["check", "run"] {
                let result = try run(try Executable.martlet(), [command, "--config", folder.file("config.yaml")])
                #expect(result.ending == .exited(78), "\(result)")
                #expect(
                    result.errorOutput.contains("config.yaml:8:") && result.errorOutput.contains(reason)
                        && result.errorOutput.contains("config.file_unwritable"), "\(result)")
            }
        }
        try withMartlet(config.text) { gateway throws in
            // A pipe without a reader: only opening it shows that.
            let pipe = gateway.folder.file("pipe")
            #expect(unsafe mkfifo(pipe, 0o600) == 0)
            try gateway.reload(Self.text("file: \(pipe)", config))
            try waitUntil("the reload is rejected") {
                gateway.log.contains { $0["reason"]?.contains("config.yaml:8:") == true }
            }
            #expect(try gateway.get("/a").status == 200)
        }
    }

    // MARK: Lines that cannot be written

    @Test func `a full disk stops no request, and a new file gets lines again`() throws {
        let upstream = try ScriptedUpstream()
        let folder = try TemporaryFolder()
        let path = folder.file("access.log")
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "/dev/full")
        let config = Self.text("file: \(path), probes: false", GatewayConfig(endpoints: [upstream.url]))
        try withMartlet(config) { gateway throws in
            for _ in 0..<20 { #expect(try gateway.get("/a").status == 200) }
            try waitUntil("all lines are counted") { try Self.lost(gateway, path) == 20 }
            try FileManager.default.removeItem(atPath: path)
            gateway.process.kill(SIGUSR1)
            try waitUntil("there is a file") { FileManager.default.fileExists(atPath: path) }
            let response = try gateway.get("/b")
            try waitUntil("lines arrive") { Self.has(path, response) }
            try waitUntil("the loss is summed up") {
                gateway.log.contains { $0["event"] == "log lines lost" && $0["lines"] == "20" && $0["file"] == path }
            }
            let begun = gateway.log.filter { $0["event"] == "log file not written" }
            #expect(begun.map { $0["reason"] } == ["No space left on device"])
            #expect(gateway.log.filter { $0["event"] == "log lines lost" }.count == 1)
            #expect(try Self.lost(gateway, path) == 20)
        }
    }

    /// A gateway whose standard output is a pipe.
    private struct PipedGateway {
        let reader: Int32
        let process: ChildProcess
        let config: GatewayConfig
        let folder: TemporaryFolder

        init() throws {
            folder = try TemporaryFolder()
            let upstream = try ScriptedUpstream()
            self.upstream = upstream
            config = try Lifecycle.fixedPorts(upstream, path: "/**")
            let file = try folder.write(config.text, to: "config.yaml")
            let pipe = folder.file("pipe")
            guard unsafe mkfifo(pipe, 0o600) == 0 else { throw TestFailure("no pipe") }
            reader = unsafe open(pipe, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
            process = try ChildProcess(
                "/bin/sh", ["-c", "exec \"$@\" >\(pipe)", "sh", try Executable.martlet(), "run", "--config", file],
                output: folder)
            let admin = try admin
            try waitUntil("the gateway listens") { (try? RawSocket(connectingTo: admin)) != nil }
        }

        private let upstream: ScriptedUpstream

        var endpoint: Endpoint { get throws { try Self.endpoint(config.listen.dropFirst("- address: ".count)) } }
        var admin: Endpoint {
            get throws { try Self.endpoint((config.admin ?? "").dropFirst("address: ".count).prefix { $0 != "\n" }) }
        }

        private static func endpoint(_ text: Substring) throws -> Endpoint { try Endpoint(text: String(text)) }

        func metric() throws -> Int {
            let page = try HTTPClient(to: try admin).exchange("GET", "/metrics").text
            let prefix = "martlet_log_lines_lost_total{file=\"stdout\"} "
            let line = page.split(separator: "\n").first { $0.hasPrefix(prefix) }
            return Int(line?.dropFirst(prefix.count) ?? "") ?? -1
        }

        func expectGoodEnd() throws {
            process.kill(SIGTERM)
            #expect(try process.wait() == .exited(0))
        }
    }

    @Test func `a closed standard output stops no request`() throws {
        let gateway = try PipedGateway()
        close(gateway.reader)
        let client = try HTTPClient(to: try gateway.endpoint)
        for _ in 0..<50 { #expect(try client.exchange("GET", "/a").status == 200) }
        try waitUntil("the lines are counted") { try gateway.metric() >= 50 }
        try gateway.expectGoodEnd()
    }

    @Test func `a reader of standard output that reads nothing stops no request`() throws {
        let gateway = try PipedGateway()
        defer { close(gateway.reader) }
        // Lines with long paths fill the 4 MiB of the queue soon.
        let path = "/" + String(repeating: "a", count: 8000)
        let client = try HTTPClient(to: try gateway.endpoint)
        var slowest = Duration.zero
        for _ in 0..<1200 {
            let stopwatch = Stopwatch()
            #expect(try client.exchange("GET", path).status == 200)
            slowest = max(slowest, stopwatch.undisturbed)
        }
        #expect(slowest < .seconds(5), "a request took \(slowest)")
        try waitUntil("lines are lost and counted") { try gateway.metric() > 0 }
        try gateway.expectGoodEnd()
    }

    // MARK: Sampling and fields

    @Test func `sampling keeps every rejection and every 5xx, and lines say what they stand for`() throws {
        let apple = try AppleFixture()
        let upstream = try ScriptedUpstream { exchange in
            try exchange.respond(exchange.request.target.hasSuffix("/broken") ? 500 : 200, body: "ok")
        }
        let config = GatewayConfig(
            endpoints: [upstream.url], providers: apple.provider(), routes: GatewayConfig.closed)
        try withMartlet(Self.text("sample: 0.0001%", config)) { gateway throws in
            for _ in 0..<30 { #expect(try gateway.get("/public/a").status == 200) }
            let rejected = try gateway.get("/closed")
            let broken = try gateway.get("/public/broken")
            let unrouted = try gateway.raw("GET //x HTTP/1.1\r\nHost: a\r\n\r\n").response
            #expect(rejected.status == 401 && broken.status == 500 && unrouted.status == 400)
            for response in [rejected, broken, unrouted] {
                try waitUntil("\(response.status) has a line") {
                    gateway.log.contains { $0["request_id"] == response["X-Request-Id"] && $0["weight"] == "1" }
                }
            }
            // A page of metrics is sampled as well.
            #expect(try gateway.askAdmin("/metrics").status == 200)
            // One of 33 is there once in 30,000 runs.
            #expect(gateway.log.filter { $0["event"] == "request" && $0["status"] == "200" }.count <= 1)
        }
    }

    @Test func `a share of the lines estimates the number of requests`() throws {
        let upstream = try ScriptedUpstream()
        try withMartlet(Self.text("sample: 50%, probes: false", GatewayConfig(endpoints: [upstream.url]))) {
            gateway throws in
            let client = try gateway.connect()
            for _ in 0..<400 { #expect(try client.exchange("GET", "/a").status == 200) }
            try gateway.stop()
            let lines = gateway.log.filter { $0["event"] == "request" }
            #expect(lines.allSatisfy { $0["weight"] == "2" })
            // Ten standard deviations.
            #expect((100...300).contains(lines.count), "\(lines.count)")
        }
    }

    @Test func `fields choose what lines have, over HTTP/1, HTTP/2 and TLS`() throws {
        let certificates = try TLSCertificates.shared.get()
        let upstream = try ScriptedUpstream { exchange in
            pause(.milliseconds(30))
            try exchange.respond(418, body: "ok")
        }
        let gone = try refusedPort()
        var config = GatewayConfig(endpoints: ["http://127.0.0.1:\(gone)", upstream.url], server: "workers: 1")
        config.listen += "\n" + certificates.listener()
        let fields =
            "timestamp, time_ms, level, event, request_id, protocol, listener, tls_version, user_agent, referer, "
            + "upstream, upstream_status, upstream_us, retries, duration_us"
        try withMartlet(Self.text("fields: [\(fields)]", config)) { gateway throws in
            let agent = [("User-Agent", "tests/1.0 \"q\""), ("Referer", "https://a.example/p?token=hidden")]
            let peer = try HTTP2Peer(to: gateway.endpoint)
            let stream = try peer.outcome(
                of: try peer.request(["GET /a HTTP/1.1", "Host: a", "user-agent: two"], ends: true))
            let responses = try (0..<3).map { _ in try gateway.get("/a", agent)["X-Request-Id"] }
            func line(_ id: String?) throws -> LogLine {
                let isLine = { (line: LogLine) in line["request_id"] == id && line["event"] == "request" }
                try waitUntil("the line of \(id ?? "none")") { gateway.log.contains(where: isLine) }
                return try #require(gateway.log.first(where: isLine))
            }
            let first = try line(responses[0])
            #expect(first["user_agent"] == "tests/1.0 \"q\"" && first["referer"] == "https://a.example/p")
            #expect(first["protocol"] == "HTTP/1.1" && first["level"] == "info" && first["upstream_status"] == "418")
            #expect(first["listener"] == "\(gateway.endpoint)" && first["tls_version"] == nil && first["time"] == nil)
            let waited = try #require(Int(first["upstream_us"] ?? ""))
            let whole = try #require(Int(first["duration_us"] ?? ""))
            #expect(waited >= 30_000 && waited <= whole)
            let second = try line(stream.value(of: "x-request-id"))
            #expect(second["protocol"] == "HTTP/2" && second["user_agent"] == "two" && second["referer"] == nil)
            let retries = try responses.map { try line($0)["retries"] ?? "none" } + [second["retries"] ?? "none"]
            #expect(retries.contains("1") && retries.allSatisfy { $0 == "0" || $0 == "1" })
            #expect(first.text.hasPrefix("{\"timestamp\":\"20") && first.fields.count == 14)
            // Lines of events have the same time.
            #expect(gateway.log.contains { $0["event"] == "listening" && $0["timestamp"] != nil && $0["time"] == nil })
            #expect(!gateway.everything.contains("hidden"))
        }
    }

    @Test func `probes are left out, their failures and changes are not`() throws {
        let upstream = try ScriptedUpstream()
        var config = GatewayConfig(endpoints: [upstream.url], server: "health: { path: /healthz }")
        config.more = ""
        try withMartlet(Self.text("probes: false", config)) { gateway throws in
            let probes = try [
                gateway.askAdmin("/livez"), gateway.askAdmin("/metrics"), gateway.get("/healthz"),
            ]
            #expect(probes.map(\.status) == [200, 200, 200])
            let kept = try [gateway.askAdmin("/none"), gateway.get("/a")]
            for response in kept {
                try waitUntil("\(response.status) has a line") {
                    gateway.log.contains { $0["request_id"] == response["X-Request-Id"] }
                }
            }
            #expect(gateway.log.filter { $0["event"] == "request" }.count == 2)
        }
    }

    @Test func `check names fields that do not exist`() throws {
        let upstream = try ScriptedUpstream()
        let config = GatewayConfig(endpoints: [upstream.url])
        let rows = [
            ("fields: [statu]", "did you mean 'status'?"), ("fields: [xyzzy]", "must be default, time"),
            ("fields: [status, status]", "'status' is there twice"),
            ("fields: [default, time]", "'time' is there twice"),
            ("fields: []", "must have at least one name"), ("rotate: daily", "external"),
            ("sample: 101%", "is not a percentage"), ("sample: 10", "must have a percent sign: '10%'"),
            ("smaple: 1%", "sample"),
        ]
        let folder = try TemporaryFolder()
        for (access, message) in rows {
            let path = try folder.write(Self.text(access, config), to: "config.yaml")
            let result = try run(try Executable.martlet(), ["check", "--config", path])
            #expect(result.ending == .exited(78) && result.errorOutput.contains(message), "\(access): \(result)")
        }
    }
}
