import WorldMachine
import WorldRedis

/// The servers of Redis, and what goes wrong with them.
final class RedisServers {
    private unowned let simulation: Simulation
    private let group: RedisGroup
    private var connections: [RedisAddress: [Connection]] = [:]
    /// When the last failover was.
    private(set) var lastFailover: Int64?
    /// When all data were lost the last time.
    private(set) var lastLoss: Int64?

    /// A client's connection.
    private final class Connection {
        let peer: Peer
        let client: RedisPeer
        var hangsUntil: Int64 = 0

        init(_ peer: Peer, _ client: RedisPeer) {
            self.peer = peer
            self.client = client
        }
    }

    init(_ simulation: Simulation) {
        self.simulation = simulation
        let machine = simulation.machine
        let clock = { machine.wallTime / 1_000_000 }
        let engine = ScriptEngine()
        func address(_ last: Int, _ port: Int = 6379) -> RedisAddress {
            RedisAddress(host: "10.0.0.\(last)", port: port)
        }
        switch simulation.plan.store {
        case .memory, .redis: group = RedisGroup(at: address(60), engine: engine, clock: clock)
        case .replicated:
            group = RedisGroup(
                at: [address(60), address(61)], sentinels: [address(70, 26379), address(71, 26379)], name: "main",
                engine: engine,
                clock: clock)
        case .cluster:
            group = RedisGroup(
                cluster: (0..<3).map { [address(60 + $0), address(63 + $0)] }, engine: engine, clock: clock)
        }
        for server in group.servers { open(server) }
    }

    /// The URL of the store in a configuration.
    var url: String {
        switch simulation.plan.store {
        case .memory: "memory:"
        case .redis: "redis://10.0.0.60:6379"
        case .replicated: "redis+sentinel://10.0.0.70:26379,10.0.0.71:26379/main"
        case .cluster: "redis+cluster://10.0.0.60:6379,10.0.0.61:6379"
        }
    }

    private func worldAddress(_ address: RedisAddress) -> Address {
        Address(Int(address.host.split(separator: ".").last ?? "0") ?? 0, address.port)
    }

    private func open(_ server: RedisModel) {
        simulation.machine.network.services[worldAddress(server.address)] = { [unowned self] stream in
            let connection = Connection(Peer(stream), server.connect())
            connections[server.address, default: []].append(connection)
            connection.client.onChange = { [unowned self] in flush(connection, server) }
            connection.peer.received = { [unowned self] bytes in
                connection.client.receive(bytes)
                flush(connection, server)
            }
            connection.peer.ended = { [unowned self] _ in
                connection.client.close()
                connections[server.address]?.removeAll { $0 === connection }
            }
            stream.watcher?(stream)
        }
    }

    private func flush(_ connection: Connection, _ server: RedisModel) {
        let output = connection.client.output
        connection.client.output = []
        let machine = simulation.machine
        machine.at(connection.hangsUntil) {
            guard !connection.peer.hasEnded else { return }
            connection.peer.send(output)
            if connection.client.isClosed { connection.peer.close() }
        }
        if let deadline = server.nextDeadline {
            machine.after(max(deadline * 1_000_000 - machine.wallTime, 0) + 1_000_000) { server.advance() }
        }
    }

    private func server(_ index: Int) -> RedisModel { group.servers[index % group.servers.count] }

    // MARK: What goes wrong

    /// Ends for a time, and has the same data again.
    func die(_ index: Int, for time: Int64) {
        let server = server(index)
        simulation.machine.network.services[worldAddress(server.address)] = nil
        let open = connections.removeValue(forKey: server.address) ?? []
        for connection in open { connection.peer.abort() }
        server.restart()
        simulation.machine.after(time) { [self] in self.open(server) }
    }

    /// Loses all data.
    func lose() {
        lastLoss = simulation.machine.now
        for server in group.nodes where !server.isReplica { server.restart(keepsData: false) }
    }

    func hang(_ index: Int, for time: Int64) {
        for connection in connections[server(index).address] ?? [] {
            connection.hangsUntil = simulation.machine.now + time
        }
    }

    func cut(_ index: Int, for time: Int64) {
        simulation.machine.network.cut[worldAddress(server(index).address).host] = simulation.machine.now + time
    }

    func cut(_ gateway: Gateway, for time: Int64) {
        for server in group.servers {
            simulation.machine.network.cut(gateway.address.host, worldAddress(server.address).host, for: time)
        }
    }

    func set(_ condition: RedisConditions, of index: Int, for time: Int64) {
        let server = server(index)
        server.conditions.insert(condition)
        simulation.machine.after(time) { server.conditions.remove(condition) }
    }

    func lag(_ writes: Int, for time: Int64) {
        for master in group.nodes where !master.isReplica {
            for link in master.links {
                master.setLag(writes, of: link.replica)
                simulation.machine.after(time) {
                    if master.links.contains(where: { $0 === link }) { master.setLag(0, of: link.replica) }
                }
            }
        }
    }

    /// A replica becomes the master, without the last writes; the old master comes back as a replica.
    func failOver(_ shard: Int, losing writes: Int, backAfter time: Int64) {
        guard simulation.plan.store == .replicated || simulation.plan.store == .cluster else { return }
        let index = shard % group.shards.count
        guard let old = group.failOver(shard: index, losing: writes) else { return }
        lastFailover = simulation.machine.now
        simulation.ledger.shake(since: simulation.machine.now - 3_500_000_000)
        simulation.machine.after(time) { [group] in group.rejoin(old) }
    }

    /// What was asked for that the model does not have.
    var unknownCommands: [String] { group.unknownCommands }
}
