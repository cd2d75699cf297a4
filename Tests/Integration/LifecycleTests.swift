import Foundation
import Glibc
import MartletTesting
import Testing

/// Start, reload, drain, end.
@Suite struct `Lifecycle` {
    static func config(_ upstream: ScriptedUpstream, path: String, server: String = "") -> String {
        let routes = "- { name: a, match: { path: \(path) }, auth: none, upstream: api }"
        return GatewayConfig(endpoints: [upstream.url], server: server, routes: routes).text
    }

    /// A configuration that keeps the ports of a running gateway: a reload must not move its listeners.
    static func config(_ upstream: ScriptedUpstream, path: String, for gateway: Gateway) -> String {
        let routes = "- { name: a, match: { path: \(path) }, auth: none, upstream: api }"
        var config = GatewayConfig(endpoints: [upstream.url], routes: routes)
        config.listen = "- address: \(gateway.endpoint)"
        config.admin = "address: \(gateway.admin)\nsocket: \(gateway.operators)"
        return config.text
    }

    static func fixedPorts(_ upstream: ScriptedUpstream, path: String) throws -> GatewayConfig {
        var config = GatewayConfig(
            endpoints: [upstream.url], routes: "- { name: a, match: { path: \(path) }, auth: none, upstream: api }")
        config.listen = "- address: 127.0.0.1:\(try refusedPort())"
        config.admin = "address: 127.0.0.1:\(try refusedPort())\nsocket: unix:admin.sock"
        return config
    }

    @Test func `SIGHUP changes routes without losing a request or a connection`() throws {
        let upstream = try ScriptedUpstream()
        try withMartlet(try Self.fixedPorts(upstream, path: "/a").text) { gateway throws in
            let kept = try gateway.connect()
            #expect(try kept.exchange("GET", "/a").status == 200)
            let stop = Box(false)
            let load = (0..<4).map { _ in
                Background { () -> [Int: Int] in
                    var counts: [Int: Int] = [:]
                    let client = try gateway.connect()
                    while !stop.value { counts[try client.exchange("GET", "/a").status, default: 0] += 1 }
                    return counts
                }
            }
            for path in ["/*", "/a", "/*", "/a", "/*"] {
                try gateway.reload(Self.config(upstream, path: path, for: gateway))
                let wanted = path == "/*" ? 200 : 404
                try waitUntil("the new routes hold") { try gateway.get("/b").status == wanted }
            }
            stop.withLock { $0 = true }
            for worker in load {
                let counts = try worker.value()
                #expect(counts.keys.sorted() == [200], "\(counts)")
            }
            #expect(try kept.exchange("GET", "/b").status == 200)
        }
    }

    @Test func `a bad new configuration is refused with all its errors, the running one stays`() throws {
        let upstream = try ScriptedUpstream()
        try withMartlet(try Self.fixedPorts(upstream, path: "/a").text) { gateway throws in
            let bad = Self.config(upstream, path: "/b", for: gateway) + "unknown_key: 1\nanother_one: 2\n"
            try gateway.reload(bad)
            try waitUntil("the log says why") {
                gateway.everything.contains("unknown_key") && gateway.everything.contains("another_one")
            }
            #expect(try gateway.get("/a").status == 200)
            #expect(try gateway.get("/b").status == 404)
            try gateway.reload(Self.config(upstream, path: "/b", for: gateway))
            try waitUntil("a good one is taken") { try gateway.get("/b").status == 200 }
        }
    }

    @Test func `requests in flight finish before the end, and say that they are the last`() throws {
        let script: ScriptedUpstream.Script = {
            pause(.milliseconds(800))
            try $0.respond(200, body: "finished")
        }
        let upstream = try ScriptedUpstream(script)
        let gateway = try Gateway(Self.config(upstream, path: "/a"))
        let idle = try gateway.connect()
        let client = try gateway.connect()
        try client.send("GET", "/a")
        try waitUntil("the request is on its way") { upstream.requests.count == 1 }
        gateway.process.kill(SIGTERM)
        let response = try client.response()
        #expect(response.text == "finished" && response["Connection"]?.lowercased() == "close")
        #expect(client.socket.isEnded(within: .seconds(2)) && idle.socket.isEnded(within: .seconds(2)))
        #expect(try gateway.process.wait() == .exited(0))
    }

    @Test func `SIGINT is an orderly end too`() throws {
        let upstream = try ScriptedUpstream()
        let gateway = try Gateway(Self.config(upstream, path: "/a"))
        gateway.process.kill(SIGINT)
        #expect(try gateway.process.wait() == .exited(0))
    }

    @Test func `while it drains it accepts no connection and says that it is not ready`() throws {
        let script: ScriptedUpstream.Script = {
            pause(.seconds(2))
            try $0.respond(200, body: "x")
        }
        let upstream = try ScriptedUpstream(script)
        let gateway = try Gateway(Self.config(upstream, path: "/a"))
        #expect(try gateway.askAdmin("/readyz").status == 200)
        let client = try gateway.connect()
        try client.send("GET", "/a")
        try waitUntil("the request is on its way") { upstream.requests.count == 1 }
        gateway.process.kill(SIGTERM)
        try waitUntil("readiness ends", within: .seconds(1)) { try gateway.askAdmin("/readyz").status == 503 }
        try waitUntil("no connection is accepted", within: .seconds(1)) {
            (try? RawSocket(connectingTo: gateway.endpoint)) == nil
        }
        #expect(try gateway.askAdmin("/livez").status == 200)
        #expect(try client.response().status == 200)
        #expect(try gateway.process.wait() == .exited(0))
    }

    @Test func `what is left at the end of the drain is cut, and the end is still a good one`() throws {
        let script: ScriptedUpstream.Script = { _ = $0.waitForEnd() }
        let upstream = try ScriptedUpstream(script)
        let gateway = try Gateway(Self.config(upstream, path: "/a", server: "timeouts: { drain: 500ms }"))
        let client = try gateway.connect()
        try client.send("GET", "/a")
        try waitUntil("the request is on its way") { upstream.requests.count == 1 }
        gateway.process.kill(SIGTERM)
        #expect(try gateway.process.wait(within: .seconds(4)) == .exited(0))
        #expect(client.socket.isEnded(within: .seconds(1)))
    }

    @Test func `a second signal ends it immediately`() throws {
        let script: ScriptedUpstream.Script = { _ = $0.waitForEnd() }
        let upstream = try ScriptedUpstream(script)
        let gateway = try Gateway(Self.config(upstream, path: "/a"))
        let client = try gateway.connect()
        try client.send("GET", "/a")
        try waitUntil("the request is on its way") { upstream.requests.count == 1 }
        gateway.process.kill(SIGTERM)
        try waitUntil("the drain has begun") { try gateway.askAdmin("/readyz").status == 503 }
        gateway.process.kill(SIGTERM)
        #expect(try gateway.process.wait(within: .seconds(3)) == .exited(128 + SIGTERM))
    }

    @Test func `a second process on the same address is refused`() throws {
        let upstream = try ScriptedUpstream()
        let config = try Self.fixedPorts(upstream, path: "/a")
        try withMartlet(config.text) { gateway throws in
            var other = config
            other.admin = "address: 127.0.0.1:0"
            let folder = try TemporaryFolder()
            let path = try folder.write(other.text, to: "config.yaml")
            let second = try ChildProcess(Executable.martlet(), ["run", "--config", path], output: folder)
            let ending = try second.wait()
            #expect(ending != .exited(0), "\(second.errorOutput)")
            #expect(try gateway.get("/a").status == 200)
        }
    }

    @Test func `reuse_port lets a new process take over without a lost request`() throws {
        var config = GatewayConfig(
            endpoints: ["builtin:echo"], routes: "- { name: a, match: { path: /a }, auth: none, upstream: api }")
        config.server = "workers: 1"
        config.listen = "- address: 127.0.0.1:\(try refusedPort())\n  reuse_port: true"
        config.admin = "address: 127.0.0.1:0"
        var gateway = try Gateway(config.text)
        let endpoint = gateway.endpoint
        let stop = Box(false)
        // Many connections of one request each: some are always between their handshake and their request.
        let load = (0..<8).map { _ in
            Background { () -> [String: Int] in
                var counts: [String: Int] = [:]
                while !stop.value { counts[Self.oneRequest(to: endpoint), default: 0] += 1 }
                return counts
            }
        }
        for _ in 0..<8 {
            let next = try Gateway(config.text)
            Thread.sleep(forTimeInterval: 0.2)
            try gateway.stop()
            gateway = next
        }
        for _ in 0..<50 { #expect(try gateway.get("/a").status == 200) }
        stop.withLock { $0 = true }
        for thread in load {
            let counts = try thread.value()
            #expect(counts.keys.sorted() == ["HTTP/1.1 200"], "\(counts)")
        }
        try gateway.stop()
    }

    /// The beginning of the response to a request that is alone on its connection, or what has failed.
    private static func oneRequest(to endpoint: Endpoint) -> String {
        do {
            let socket = try RawSocket(connectingTo: endpoint)
            defer { socket.close() }
            try socket.send("GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            return String(decoding: try socket.receive().prefix(12), as: UTF8.self)
        } catch { return "\(error)" }
    }
}
