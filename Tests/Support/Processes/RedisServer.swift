import Foundation

/// A real Redis server of the test's own, empty, on a port and a unix socket of its own.
package final class RedisServer: Sendable {
    package let port: UInt16
    /// Of the bus between nodes, if it is one of a cluster.
    package let busPort: UInt16?
    package let socketPath: String
    private let folder: TemporaryFolder
    private let process: Box<ChildProcess>
    private let arguments: [String]

    /// Starts a server and waits until it responds.
    /// - Parameters:
    ///   - password: what clients must say first; empty for none.
    ///   - extra: more of redis.conf, as `--name value` arguments.
    ///   - isClusterNode: whether it is to be a node of a cluster.
    package init(password: String = "", extra: [String] = [], isClusterNode: Bool = false) throws {
        folder = try TemporaryFolder()
        let cluster = isClusterNode ? try RedisProgram.ClusterPorts() : nil
        port = try cluster?.own ?? refusedPort()
        busPort = cluster?.bus
        socketPath = folder.file("redis.sock")
        var arguments = ["--bind", "127.0.0.1", "--port", String(port), "--unixsocket", socketPath]
        arguments += ["--save", "", "--appendonly", "no", "--dir", folder.path, "--daemonize", "no"]
        if !password.isEmpty { arguments += ["--requirepass", password] }
        if let cluster { arguments += ["--cluster-enabled", "yes"] + cluster.options }
        self.arguments = arguments + extra
        process = Box(try Self.start(self.arguments, folder))
        try waitForReply()
    }

    /// As `store.url` is written.
    package var url: String { "redis://127.0.0.1:\(port)" }

    /// Ends the server immediately, as a crash would.
    package func stop() throws {
        process.value.kill(9)
        _ = try process.value.wait()
    }

    /// Starts it again on the same port, with what it has saved.
    /// - Parameter extra: more arguments, for this start alone.
    package func restart(extra: [String] = []) throws {
        let fresh = try Self.start(arguments + extra, folder)
        process.withLock { $0 = fresh }
        try waitForReply()
    }

    /// Stops or continues the server's process, so that it accepts and does not respond.
    package func freeze(_ frozen: Bool) { process.value.kill(frozen ? 19 : 18) }

    /// Sends one inline command and returns the reply.
    package func command(_ text: String) throws -> String {
        let socket = try RawSocket(connectingTo: .loopback(port))
        try socket.send(text + "\r\n")
        return String(decoding: try socket.receive(), as: UTF8.self)
    }

    private static func start(_ arguments: [String], _ folder: TemporaryFolder) throws -> ChildProcess {
        let name = "redis-\(UInt32.random(in: 0 ... .max))"
        return try ChildProcess(try RedisProgram.path(), arguments, output: folder, name: name)
    }

    private func waitForReply() throws {
        try waitUntil("the server responds on \(port)") {
            guard let reply = try? command("PING") else { return false }
            return ["+PONG", "-NOAUTH", "-LOADING"].contains { reply.hasPrefix($0) }
        }
    }
}
