import Foundation
import Glibc
import MartletTesting
import Testing

/// Listening sockets that another process has opened, and Unix sockets of our own with an owner.
@Suite struct `Socket activation` {
    /// A command line that opens sockets as the descriptors 3, 4 … and becomes the gateway, as a service manager does.
    private static func launcher(_ sockets: [String], manager: Bool = true) throws -> [String] {
        let script = """
            import os, socket, sys
            sockets = [\(sockets.joined(separator: ", "))]
            for number, one in enumerate(sockets):
                os.dup2(one.fileno(), 100 + number, inheritable=False)
            for number in range(len(sockets)):
                os.dup2(100 + number, 3 + number, inheritable=True)
            if \(manager ? "True" : "False"):
                os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(sockets)), LISTEN_FDNAMES="a:b")
            os.execv(sys.argv[1], sys.argv[1:])
            """
        return [try Executable.named("python3"), "-c", script]
    }

    private static let port = "socket.create_server((\"127.0.0.1\", 0), reuse_port=True)"
    private static func config(_ upstream: ScriptedUpstream, listen: String) -> String {
        var config = GatewayConfig(endpoints: [upstream.url], server: "workers: 2")
        config.listen = listen
        return config.text
    }

    @Test(arguments: [true, false])
    func `gives the gateway its listeners`(_ manager: Bool) throws {
        let upstream = try ScriptedUpstream()
        let gateway = try Gateway(
            Self.config(upstream, listen: "- address: fd:3\n- { address: fd:4, http2: false }"),
            launcher: try Self.launcher([Self.port, Self.port], manager: manager))
        #expect(Set(gateway.endpoints.map(\.port)).count == 2)
        for endpoint in gateway.endpoints {
            #expect(try HTTPClient(to: endpoint).exchange("GET", "/a").status == 200)
        }
        try gateway.stop()
    }

    @Test func `may be of a Unix socket, whose file stays`() throws {
        let upstream = try ScriptedUpstream()
        let folder = try TemporaryFolder()
        let script = """
            (lambda one: (one.bind("\(folder.file("a.sock"))"), one.listen(), one)[2])(socket.socket(socket.AF_UNIX))
            """
        let gateway = try Gateway(
            Self.config(upstream, listen: "- address: fd:3"), launcher: try Self.launcher([script]))
        #expect(gateway.endpoint == .unix(folder.file("a.sock")))
        for _ in 0..<20 { #expect(try gateway.get("/a").status == 200) }
        try gateway.stop()
        #expect(unsafe access(folder.file("a.sock"), F_OK) == 0)
    }

    @Test func `outlives reloads and takeovers`() throws {
        let upstream = try ScriptedUpstream()
        let both = "- address: fd:3\n- { address: unix:m.sock }"
        let gateway = try Gateway(
            Self.config(upstream, listen: both), launcher: try Self.launcher([Self.port]))
        let endpoint = try #require(gateway.endpoints.first { $0.port != 0 })
        func reloads() -> Int { gateway.log.filter { $0["event"] == "configuration reloaded" }.count }
        for listen in ["- { address: unix:m.sock }", both] {
            let before = reloads()
            try gateway.reload(Self.config(upstream, listen: listen))
            try waitUntil("it is reloaded") { reloads() > before }
        }
        #expect(try HTTPClient(to: endpoint).exchange("GET", "/a").status == 200)
        gateway.process.kill(SIGUSR2)
        try waitUntil("successor ready", within: .seconds(30)) {
            gateway.log.contains { $0["event"] == "took over from predecessor" }
        }
        #expect(try gateway.process.wait() == .exited(0))
        #expect(try HTTPClient(to: endpoint).exchange("GET", "/a").status == 200)
        let successor = try #require(
            gateway.log.last { $0["event"] == "successor started" }?["pid"].flatMap { Int32($0) })
        kill(successor, SIGTERM)
        try waitUntil("the socket is closed") { (try? RawSocket(connectingTo: endpoint)) == nil }
    }

    @Test(arguments: [
        (
            "fd:4",
            "config.yaml:4:16: fd:4 is not a listening socket passed at startup; the service manager passed 1"
        ),
        ("fd:77", "fd:77 is not a listening socket passed at startup"),
    ])
    func `of a missing socket is an error in the configuration`(_ address: String, _ text: String) throws {
        let upstream = try ScriptedUpstream()
        let folder = try TemporaryFolder()
        let path = try folder.write(Self.config(upstream, listen: "- address: \(address)"), to: "config.yaml")
        let launcher = try Self.launcher([Self.port])
        let result = try run(
            launcher[0], Array(launcher.dropFirst()) + [try Executable.martlet(), "run", "--config", path])
        #expect(result.ending == .exited(78), "\(result)")
        #expect(result.errorOutput.contains(text), "\(result)")
    }

    @Test func `does not take a socket that does not listen`() throws {
        let upstream = try ScriptedUpstream()
        let folder = try TemporaryFolder()
        let path = try folder.write(Self.config(upstream, listen: "- address: fd:3"), to: "config.yaml")
        let launcher = try Self.launcher(["socket.socket()"])
        let result = try run(
            launcher[0], Array(launcher.dropFirst()) + [try Executable.martlet(), "run", "--config", path])
        #expect(result.ending == .exited(78) && result.errorOutput.contains("server.bad_descriptor"), "\(result)")
    }

    @Test func `is not needed for a Unix socket with owner, group and mode`() throws {
        let upstream = try ScriptedUpstream()
        let listen = "- { address: unix:m.sock, owner: \"\(getuid())\", group: \"\(getgid())\", mode: \"0620\" }"
        try withMartlet(Self.config(upstream, listen: listen)) { gateway throws in
            let path = gateway.folder.file("m.sock")
            func mode() throws -> Int? {
                try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
            }
            #expect(try mode() == 0o620)
            try gateway.reload(Self.config(upstream, listen: listen.replacing("0620", with: "0666")))
            try waitUntil("it has the new mode") { try mode() == 0o666 }
            #expect(try HTTPClient(to: .unix(path)).exchange("GET", "/a").status == 200)
        }
    }

    @Test func `of an unknown owner is an error in the configuration`() throws {
        let upstream = try ScriptedUpstream()
        let folder = try TemporaryFolder()
        let listen = "- { address: unix:m.sock, owner: no-such-user }"
        let path = try folder.write(Self.config(upstream, listen: listen), to: "config.yaml")
        let result = try run(try Executable.martlet(), ["run", "--config", path])
        #expect(result.ending == .exited(78), "\(result)")
        #expect(
            result.errorOutput.contains("config.yaml:4:18: error: owner: unknown user 'no-such-user'"),
            "\(result)")
    }
}
