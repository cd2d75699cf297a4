import Foundation
import Glibc
import MartletTesting
import Testing

/// The upgrade of the binary: SIGUSR2.
@Suite struct `A takeover` {
    /// A gateway on a port and a Unix socket whose program file can be exchanged.
    private final class Fleet: Sendable {
        let folder: TemporaryFolder
        let upstream: ScriptedUpstream
        let first: Gateway

        init(_ script: @escaping ScriptedUpstream.Script = { try $0.respond(200, body: "ok") }) throws {
            folder = try TemporaryFolder()
            upstream = try ScriptedUpstream(script)
            let program = folder.file("martlet")
            try FileManager.default.createSymbolicLink(
                atPath: program, withDestinationPath: try Executable.martlet())
            first = try Gateway(try Fleet.config(upstream, workers: 2), in: folder, program: program)
        }

        static func config(_ upstream: ScriptedUpstream, workers: Int, extra: String = "") throws -> String {
            var config = GatewayConfig(
                endpoints: [upstream.url], server: "workers: \(workers)\ntimeouts: { drain: 5s }")
            config.listen = "- address: 127.0.0.1:0\n- { address: unix:m.sock, mode: \"0600\" }"
            config.more = extra
            return config.text
        }

        func configure(workers: Int, extra: String = "") throws {
            try folder.write(try Fleet.config(upstream, workers: workers, extra: extra), to: "config.yaml")
        }

        /// Puts a program in the place of the gateway's.
        func install(_ script: String) throws {
            try folder.write("#!/bin/sh\n\(script)\n", to: "new")
            unsafe _ = chmod(folder.file("new"), 0o755)
            unsafe _ = rename(folder.file("new"), folder.file("martlet"))
        }

        func installGateway() throws {
            try? FileManager.default.removeItem(atPath: folder.file("martlet"))
            try FileManager.default.createSymbolicLink(
                atPath: folder.file("martlet"), withDestinationPath: try Executable.martlet())
        }

        func events(_ event: String) -> [LogLine] { first.log.filter { $0["event"] == event } }

        /// Has the process that serves start a successor, and waits until that serves.
        func upgrade() throws {
            let before = events("took over from predecessor").count
            kill(serving, SIGUSR2)
            try waitUntil("successor ready", within: .seconds(30)) {
                events("took over from predecessor").count > before
            }
        }

        /// The process that serves now.
        var serving: Int32 {
            guard events("took over from predecessor").count > 0 else { return first.process.identifier }
            return events("successor started").last?["pid"].flatMap { Int32($0) } ?? -1
        }

        var unix: Endpoint { .unix(folder.file("m.sock")) }

        /// Ends the process that serves, and expects that nothing of it is left.
        func end() throws {
            let last = serving
            guard last != first.process.identifier else { return try first.stop() }
            kill(last, SIGTERM)
            try waitUntil("the last one is gone") { !isRunning(last) }
            #expect(unsafe access(folder.file("m.sock"), F_OK) != 0)
            // It ends with its last connection, which may be a moment after its successor.
            try waitUntil("the first one is gone") { first.process.poll() != nil }
            #expect(first.process.poll() == .exited(0))
        }
    }

    /// Sends requests until it is stopped; responses are counted by status, everything else by what went wrong.
    private static func load(_ endpoint: Endpoint, keeping: Bool, _ stop: Box<Bool>) -> Background<[String: Int]> {
        Background {
            var counts: [String: Int] = [:]
            var kept: HTTPClient?
            while !stop.value {
                do {
                    let client = try kept ?? HTTPClient(to: endpoint)
                    let response = try client.exchange("GET", "/a")
                    counts["\(response.status)", default: 0] += 1
                    kept = keeping && response["Connection"]?.lowercased() != "close" ? client : nil
                } catch {
                    counts["\(error)", default: 0] += 1
                    kept = nil
                }
            }
            return counts
        }
    }

    @Test func `under load loses nothing, whatever the number of loops`() throws {
        let fleet = try Fleet()
        let stop = Box(false)
        let load = [
            Self.load(fleet.first.endpoint, keeping: false, stop), Self.load(fleet.first.endpoint, keeping: true, stop),
            Self.load(fleet.unix, keeping: false, stop), Self.load(fleet.unix, keeping: true, stop),
        ]
        let readiness = Background { () -> Set<Int> in
            var found: Set<Int> = []
            while !stop.value { found.insert(try fleet.first.askAdmin("/readyz").status) }
            return found
        }
        for workers in [3, 1, 2] {
            try fleet.configure(workers: workers)
            let old = fleet.serving
            try fleet.upgrade()
            #expect(fleet.serving != old)
            try waitUntil("the old one is gone") { !isRunning(old) || fleet.first.process.poll() != nil }
        }
        stop.withLock { $0 = true }
        for worker in load {
            let counts = try worker.value()
            #expect(counts.keys.sorted() == ["200"], "\(counts)")
        }
        #expect(try readiness.value() == [200])
        #expect(fleet.first.process.poll() == .exited(0))
        try fleet.end()
    }

    @Test func `lets the old process finish what it has begun`() throws {
        let script: ScriptedUpstream.Script = {
            pause(.milliseconds(1500))
            try $0.respond(200, body: "finished")
        }
        let fleet = try Fleet(script)
        let client = try fleet.first.connect()
        try client.send("GET", "/a")
        try waitUntil("the request is on its way") { fleet.upstream.requests.count == 1 }
        try fleet.upgrade()
        let response = try client.response()
        #expect(response.text == "finished" && response["Connection"]?.lowercased() == "close")
        #expect(try fleet.first.process.wait() == .exited(0))
        try fleet.end()
    }

    @Test func `that fails leaves everything as it was`() throws {
        let fleet = try Fleet()
        try fleet.configure(workers: 2, extra: "unknown_key: 1")
        fleet.first.process.kill(SIGUSR2)
        try waitUntil("the log says why", within: .seconds(30)) {
            fleet.events("successor exited before it was ready; this process keeps serving").last?["reason"]
                == "status 78"
        }
        #expect(try fleet.first.get("/a").status == 200)
        #expect(try HTTPClient(to: fleet.unix).exchange("GET", "/a").status == 200)
        #expect(try fleet.first.askAdmin("/readyz").status == 200)
        #expect(fleet.first.everything.contains("unknown_key"))
        try fleet.configure(workers: 2)
        try fleet.upgrade()
        #expect(try fleet.first.get("/a").status == 200)
        try fleet.end()
    }

    @Test func `that fails late takes no socket away`() throws {
        let fleet = try Fleet()
        // The successor has everything, and then the port of another process is in its way.
        let taken = try Listener(on: .loopback(0))
        var config = try Fleet.config(fleet.upstream, workers: 2)
        config = config.replacing(
            "- { address: unix", with: "- { address: \"\(taken.endpoint)\" }\n    - { address: unix")
        try fleet.folder.write(config, to: "config.yaml")
        fleet.first.process.kill(SIGUSR2)
        try waitUntil("the log says why", within: .seconds(30)) {
            fleet.events("successor exited before it was ready; this process keeps serving").last?["reason"]
                == "status 69"
        }
        #expect(fleet.first.everything.contains("config.yaml:5:"))
        #expect(try HTTPClient(to: fleet.unix).exchange("GET", "/a").status == 200)
        #expect(try fleet.first.get("/a").status == 200)
        try fleet.end()
    }

    @Test func `is one at a time, and ends with the process that began it`() throws {
        let fleet = try Fleet()
        try fleet.install("exec sleep 60")
        fleet.first.process.kill(SIGUSR2)
        try waitUntil("a successor is there") { !fleet.events("successor started").isEmpty }
        fleet.first.process.kill(SIGUSR2)
        try waitUntil("the second is refused") {
            !fleet.events("upgrade already in progress").isEmpty
        }
        #expect(try fleet.first.get("/a").status == 200)
        let successor = try #require(fleet.events("successor started").last?["pid"].flatMap { Int32($0) })
        try fleet.first.stop()
        #expect(!isRunning(successor))
    }

    @Test func `takes the program file as it is now`() throws {
        let fleet = try Fleet()
        try fleet.install("touch \"$(dirname \"$0\")/marker\"; exec \(try Executable.martlet()) \"$@\"")
        try fleet.upgrade()
        #expect(unsafe access(fleet.folder.file("marker"), F_OK) == 0)
        #expect(try fleet.first.get("/a").status == 200)
        try fleet.installGateway()
        try fleet.upgrade()
        #expect(try fleet.first.get("/a").status == 200)
        try fleet.end()
    }

    @Test func `lets the old process finish handshakes of those whom it has accepted`() throws {
        let upstream = try ScriptedUpstream()
        let authority = try CertificateAuthority()
        let shown = try authority.issue("localhost", ["IP:127.0.0.1"])
        var config = GatewayConfig(endpoints: [upstream.url])
        let tls = "{ certificate_file: \(shown.certificateFile), key_file: \(shown.keyFile) }"
        config.listen = "- { address: \"127.0.0.1:0\", tls: \(tls) }"
        let gateway = try Gateway(config.text)
        let folder = try TemporaryFolder()
        let script = """
            import os, socket, ssl, sys, time
            sock = socket.create_connection(("127.0.0.1", \(gateway.endpoint.port)), 20)
            while not os.path.exists("\(folder.file("go"))"): time.sleep(0.01)
            context = ssl.create_default_context(cafile="\(authority.certificateFile)")
            with context.wrap_socket(sock, server_hostname="127.0.0.1") as secure:
                secure.sendall(b"GET /a HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n")
                print(secure.recv(12).decode())
            """
        let client = try ChildProcess(try Executable.named("python3"), ["-c", script], output: folder)
        try waitUntil("the connection is accepted") {
            try gateway.askAdmin("/metrics").text.contains("martlet_proxy_connections_open 1\n")
        }
        gateway.process.kill(SIGTERM)
        try waitUntil("the drain has begun") { (try? RawSocket(connectingTo: gateway.endpoint)) == nil }
        try folder.write("", to: "go")
        #expect(try client.wait() == .exited(0), "\(client.errorOutput)")
        #expect(client.output == "HTTP/1.1 200\n")
        #expect(try gateway.process.wait() == .exited(0))
    }

    @Test func `of a program file that is gone does nothing`() throws {
        let fleet = try Fleet()
        try FileManager.default.removeItem(atPath: fleet.folder.file("martlet"))
        fleet.first.process.kill(SIGUSR2)
        try waitUntil("the log says so") {
            !fleet.events("successor could not be started; this process keeps serving").isEmpty
        }
        #expect(try fleet.first.get("/a").status == 200)
        try fleet.end()
    }
}

/// Whether a process is there that has not ended; one that was not waited for yet has.
private func isRunning(_ pid: Int32) -> Bool {
    guard let text = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8) else { return false }
    return text.split(separator: ")").last?.split(separator: " ").first != "Z"
}
