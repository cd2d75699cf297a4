import Foundation
import MartletTesting

/// A master, replicas and sentinels of the test's own.
final class RedisSentinelServers: Sendable {
    let master: RedisServer
    let replicas: [RedisServer]
    let sentinels: [Sentinel]

    /// One sentinel; it writes its configuration.
    final class Sentinel: Sendable {
        let port: UInt16
        private let folder: TemporaryFolder
        private let process: Box<ChildProcess>

        init(of master: RedisServer, quorum: Int, extra: [String]) throws {
            folder = try TemporaryFolder()
            port = try refusedPort()
            let lines = [
                "bind 127.0.0.1", "port \(port)", "dir \(folder.path)", "daemonize no",
                "sentinel monitor mymaster 127.0.0.1 \(master.port) \(quorum)",
                "sentinel down-after-milliseconds mymaster 500", "sentinel failover-timeout mymaster 3000",
            ]
            let file = folder.file("sentinel.conf")
            try (lines + extra).joined(separator: "\n").appending("\n").write(
                toFile: file, atomically: true, encoding: .utf8)
            process = Box(
                try ChildProcess(
                    try RedisProgram.path(), [file, "--sentinel"], output: folder, name: "sentinel"))
            let port = port
            try waitUntil("the sentinel responds") { (try? Self.command("PING", port))?.hasPrefix("+PONG") == true }
        }

        func command(_ text: String) throws -> String { try Self.command(text, port) }

        func stop() throws {
            process.value.kill(9)
            _ = try process.value.wait()
        }

        private static func command(_ text: String, _ port: UInt16) throws -> String {
            let socket = try RawSocket(connectingTo: .loopback(port))
            try socket.send(text + "\r\n")
            return String(decoding: try socket.receive(), as: UTF8.self)
        }
    }

    init(replicas count: Int = 2, sentinels sentinelCount: Int = 3, extra: [String] = []) throws {
        let master = try RedisServer()
        self.master = master
        replicas = try (0..<count).map { _ in
            let replica = try RedisServer(extra: ["--replicaof", "127.0.0.1", "\(master.port)"])
            try waitUntil("the replica is in sync") {
                try replica.command("INFO replication").contains("master_link_status:up")
            }
            return replica
        }
        sentinels = try (0..<sentinelCount).map { _ in
            try Sentinel(of: master, quorum: sentinelCount / 2 + 1, extra: extra)
        }
        for sentinel in sentinels {
            try waitUntil("the sentinels know each other and the replicas") {
                let text = try sentinel.command("SENTINEL MASTER mymaster")
                return text.contains("num-other-sentinels\r\n$1\r\n\(sentinelCount - 1)\r\n")
                    && text.contains("num-slaves\r\n$1\r\n\(count)\r\n")
            }
        }
    }

    /// As `store.url` is written.
    var url: String {
        "redis+sentinel://" + sentinels.map { "127.0.0.1:\($0.port)" }.joined(separator: ",") + "/mymaster/0"
    }

    /// The port of the master that a sentinel names.
    var masterPort: UInt16? {
        guard let reply = try? sentinels[0].command("SENTINEL GET-MASTER-ADDR-BY-NAME mymaster") else { return nil }
        return reply.split(separator: "\r\n").last.flatMap { UInt16($0) }
    }

    var all: [RedisServer] { [master] + replicas }
}
