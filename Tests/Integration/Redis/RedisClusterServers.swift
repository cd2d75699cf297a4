import Foundation
import MartletTesting

/// A Redis Cluster of the test's own: masters without replicas, which share the slots.
final class RedisClusterServers: Sendable {
    let servers: [RedisServer]

    init(masters: Int = 3, extra: [String] = []) throws {
        servers = try (0..<masters).map { _ in
            try RedisServer(extra: ["--cluster-node-timeout", "2000"] + extra, isClusterNode: true)
        }
        let meeting = "CLUSTER MEET 127.0.0.1 \(servers[0].port) \(servers[0].busPort ?? 0)"
        let share = 16_384 / masters
        for (index, server) in servers.enumerated() {
            let last = index == masters - 1 ? 16_383 : (index + 1) * share - 1
            // A range can be named since 7.0, and a line has at most 64 KiB.
            for first in stride(from: index * share, through: last, by: 5000) {
                let slots = (first...min(first + 4999, last)).map(String.init).joined(separator: " ")
                _ = try server.command("CLUSTER ADDSLOTS \(slots)")
            }
            _ = try server.command("CLUSTER SET-CONFIG-EPOCH \(index + 1)")
            if index > 0 { _ = try server.command(meeting) }
        }
        for server in servers {
            try waitUntil("the cluster is complete") {
                let info = try server.command("CLUSTER INFO")
                return info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:\(masters)")
            }
        }
    }

    /// As `store.url` is written.
    var url: String { "redis+cluster://" + servers.map { "127.0.0.1:\($0.port)" }.joined(separator: ",") }

    /// Adds a replica of a master, and waits until it is in sync and every node knows it.
    func addReplica(of master: RedisServer, extra: [String] = []) throws -> RedisServer {
        let port = try refusedPort()
        let replica = try RedisServer(
            extra: ["--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-port", "\(port)"] + extra)
        let (masterID, replicaID) = (try id(of: master), try id(of: replica))
        _ = try master.command("CLUSTER MEET 127.0.0.1 \(replica.port) \(port)")
        try waitUntil("the master is known") { try replica.command("CLUSTER REPLICATE \(masterID)") == "+OK\r\n" }
        try waitUntil("the replica is in sync") {
            try replica.command("INFO replication").contains("master_link_status:up")
        }
        for server in servers {
            try waitUntil("the replica is listed") { try server.command("CLUSTER SLOTS").contains(replicaID) }
        }
        return replica
    }

    func id(of server: RedisServer) throws -> String {
        let reply = try server.command("CLUSTER MYID")
        return String(reply.split(separator: "\r\n")[1])
    }

    /// Moves a slot with its keys, like `redis-cli --cluster reshard`.
    func move(
        _ slot: Int, from source: RedisServer, to target: RedisServer, pausing pause: () throws -> Void = {}
    ) throws {
        let (sourceID, targetID) = (try id(of: source), try id(of: target))
        _ = try target.command("CLUSTER SETSLOT \(slot) IMPORTING \(sourceID)")
        _ = try source.command("CLUSTER SETSLOT \(slot) MIGRATING \(targetID)")
        while true {
            let words = try source.command("CLUSTER GETKEYSINSLOT \(slot) 1").split(separator: "\r\n").map(String.init)
            guard words.count >= 3 else { break }
            _ = try source.command("MIGRATE 127.0.0.1 \(target.port) \(words[2]) 0 5000")
            try pause()
        }
        for server in [target, source] + servers.filter({ $0 !== source && $0 !== target }) {
            _ = try server.command("CLUSTER SETSLOT \(slot) NODE \(targetID)")
        }
    }
}
