/// Servers that belong together: one alone; a master with replicas, watched by sentinels; or the shards of a cluster.
package final class RedisGroup {
    /// The servers of each shard, its first master first.
    package private(set) var shards: [[RedisModel]]
    package private(set) var sentinels: [RedisModel] = []
    /// Servers that the others cannot reach: they get no news of the group, and no messages.
    package var isolated: Set<RedisAddress> = []
    private var masters: [RedisModel]
    /// The slots, as the reachable nodes know them.
    private var slots: RedisSlots?

    /// One server alone.
    package convenience init(at address: RedisAddress, engine: ScriptEngine, clock: @escaping () -> Int64) {
        self.init(at: [[address]], isCluster: false, engine, clock)
    }

    /// A master, its replicas, and the sentinels that watch them.
    /// - Parameters:
    ///   - addresses: the master first.
    ///   - name: as clients ask for the master.
    package convenience init(
        at addresses: [RedisAddress], sentinels: [RedisAddress], name: String, engine: ScriptEngine,
        clock: @escaping () -> Int64
    ) {
        self.init(at: [addresses], isCluster: false, engine, clock)
        guard let master = addresses.first else { return }
        self.sentinels = sentinels.map { address in
            let sentinel = RedisModel(at: address, engine: engine, clock: clock)
            var view = RedisSentinelView(name: name, master: master)
            view.replicas = Array(addresses.dropFirst())
            view.others = sentinels.filter { $0 != address }
            sentinel.sentinel = view
            return sentinel
        }
    }

    /// A cluster.
    /// - Parameter addresses: of each shard the master and its replicas.
    package convenience init(
        cluster addresses: [[RedisAddress]], engine: ScriptEngine, clock: @escaping () -> Int64
    ) {
        self.init(at: addresses, isCluster: true, engine, clock)
    }

    private init(
        at addresses: [[RedisAddress]], isCluster: Bool, _ engine: ScriptEngine, _ clock: @escaping () -> Int64
    ) {
        shards = addresses.map { $0.map { RedisModel(at: $0, engine: engine, clock: clock) } }
        masters = shards.compactMap(\.first)
        for shard in shards {
            for replica in shard.dropFirst() { replica.follow(shard[0]) }
        }
        guard isCluster else { return }
        slots = RedisSlots(dividedAmong: addresses)
        for node in nodes {
            node.slots = slots
            node.broadcast = { [weak self, address = node.address] in self?.broadcast($0, on: $1, from: address) }
        }
    }

    /// All servers that have keys.
    package var nodes: [RedisModel] { shards.flatMap(\.self) }
    /// All servers, those that have keys and sentinels.
    package var servers: [RedisModel] { nodes + sentinels }
    /// What some server was asked for and the model does not have.
    package var unknownCommands: [String] { servers.flatMap(\.unknownCommands) }

    /// The server at an address.
    package func server(at address: RedisAddress) -> RedisModel? { servers.first { $0.address == address } }

    /// The master of a shard, as the others see it.
    package func master(ofShard shard: Int = 0) -> RedisModel { masters[shard] }

    /// Which shard has a key.
    package func shard(of key: RedisKey) -> Int {
        let owner = slots?.master(of: key.slot)
        return masters.firstIndex { $0.address == owner } ?? 0
    }

    private func broadcast(_ message: [UInt8], on channel: [UInt8], from source: RedisAddress) {
        guard !isolated.contains(source) else { return }
        for node in nodes where node.address != source && !isolated.contains(node.address) {
            node.deliver(message, on: channel)
        }
    }
}

// MARK: - Failover

extension RedisGroup {
    /// Makes a replica the master of a shard. The old master does not learn it until ``rejoin(_:)``.
    /// - Parameters:
    ///   - count: how many of the writes are lost that the replica does not have yet.
    ///   - index: which of the replicas; the first one that can be reached otherwise.
    /// - Returns: the old master; `nil` if there is no such replica.
    @discardableResult
    package func failOver(shard: Int = 0, losing count: Int, to index: Int? = nil) -> RedisModel? {
        let old = masters[shard]
        let replicas = old.links.map(\.replica).filter { !isolated.contains($0.address) }
        guard let new = replicas.dropFirst(index ?? 0).first else { return nil }
        new.promote(losing: count)
        masters[shard] = new
        for replica in replicas where replica !== new { replica.follow(new) }
        slots?.replace(old.address, by: new.address)
        publishSlots()
        for sentinel in reachable(sentinels) {
            guard var view = sentinel.sentinel else { continue }
            view.master = new.address
            view.epoch += 1
            view.replicas = view.replicas.filter { $0 != new.address } + [old.address]
            view.down.insert(old.address)
            sentinel.sentinel = view
            announce([old.address, new.address], by: sentinel, view.name)
        }
        if !sentinels.isEmpty { new.closePeers() }
        return old
    }

    /// Makes an old master, or a server that was unreachable, a replica of its shard's master.
    package func rejoin(_ server: RedisModel) {
        guard let shard = shards.firstIndex(where: { $0.contains { $0 === server } }) else { return }
        let master = masters[shard]
        if server !== master { server.follow(master) }
        if server !== master { slots?.add(server.address, of: master.address) }
        publishSlots()
        for sentinel in reachable(sentinels) { sentinel.sentinel?.down.remove(server.address) }
        if !sentinels.isEmpty { server.closePeers() }
    }

    /// Lets the reachable nodes know the slots.
    private func publishSlots() { for node in reachable(nodes) { node.slots = slots } }

    private func reachable(_ servers: [RedisModel]) -> [RedisModel] {
        servers.filter { !isolated.contains($0.address) }
    }

    private func announce(_ masters: [RedisAddress], by sentinel: RedisModel, _ name: String) {
        let words = [name] + masters.flatMap { [$0.host, String($0.port)] }
        sentinel.deliver(Array(words.joined(separator: " ").utf8), on: Array("+switch-master".utf8))
    }
}

// MARK: - Moving slots

extension RedisGroup {
    /// Begins to move a slot to another shard: its keys are there one by one.
    package func beginMoving(_ slot: UInt16, to shard: Int) {
        guard let source = slots?.master(of: slot), source != masters[shard].address else { return }
        slots?.moves[slot] = RedisSlots.Move(source: source, target: masters[shard].address)
        publishSlots()
    }

    /// Moves keys of a slot that is being moved, in the order of their names.
    /// - Returns: how many are left.
    @discardableResult
    package func moveKeys(_ count: Int, of slot: UInt16) -> Int {
        guard let move = slots?.moves[slot], let source = server(at: move.source),
            let target = server(at: move.target)
        else { return 0 }
        let keys = source.change { data in data.keys.filter { $0.slot == slot } }
        for key in keys.prefix(count) {
            guard let entry = source.data.entry(key) else { continue }
            target.change { $0.set(key, entry.value, expiry: entry.expiry) }
            source.change { _ = $0.remove(key) }
        }
        return max(keys.count - count, 0)
    }

    /// Moves what is left, after which the other shard has the slot.
    package func endMoving(_ slot: UInt16) {
        guard let move = slots?.moves[slot] else { return }
        moveKeys(.max, of: slot)
        slots?.assign(slot, to: move.target)
        publishSlots()
    }
}
