import Testing
import WorldRedis

/// A master with two replicas and three sentinels.
private struct Replicated {
    let stage = Stage()
    let group: RedisGroup
    let peer: RedisPeer

    var master: RedisModel { group.master() }
    func replica(_ index: Int) -> RedisModel { group.shards[0][index] }

    init() {
        let stage = stage
        group = RedisGroup(
            at: (1...3).map { stage.address($0) }, sentinels: (7...9).map { stage.address($0) }, name: "m",
            engine: stage.engine, clock: stage.clock)
        peer = group.master().connect()
    }
}

@Suite struct RedisReplicationTests {
    private let servers = Replicated()

    @Test func `replicas have what the master has, and refuse writes`() {
        #expect(servers.peer.call("SET a 1\nHSET h f 1\nDEL h\nPUBLISH c x") == "+OK|:1|:1|:0")
        let peer = servers.replica(1).connect()
        #expect(peer.call("GET a\nEXISTS h") == "$1|1|:0")
        #expect(peer.call("SET a 2") == "-READONLY You can't write against a read only replica.")
        #expect(peer.call(words: "EVAL", "return redis.call('DEL', 'a')", "0").hasPrefix("-READONLY "))
        #expect(peer.call("ROLE") == "*5|$5|slave|$1|h|:1|$9|connected|:4")
        #expect(servers.peer.call("ROLE") == "*3|$6|master|:4|*2|*3|$1|h|$1|2|$1|4|*3|$1|h|$1|3|$1|4")
    }

    @Test func `messages reach the subscribers of replicas with their writes`() {
        let subscriber = servers.replica(1).connect()
        _ = subscriber.call("SUBSCRIBE c")
        servers.master.setLag(1, of: servers.replica(1))
        #expect(servers.peer.call("PUBLISH c x") == ":0")
        #expect(subscriber.take() == "")
        _ = servers.peer.call("SET a 1")
        #expect(subscriber.take() == "*3|$7|message|$1|c|$1|x")
    }

    @Test func `a wait ends when the replicas have the write, or when its time is over`() {
        let peer = servers.peer
        #expect(peer.call("SET a 1\nWAIT 2 100\nWAIT 3 0\nPING") == "+OK|:2")
        // Blocked for ever, until there is a third replica.
        let other = servers.master.connect()
        servers.master.setLag(.max, of: servers.replica(1))
        #expect(other.call("SET a 2\nWAIT 2 100\nGET a") == "+OK")
        #expect(servers.master.nextDeadline == servers.stage.now + 100)
        servers.stage.now += 99
        servers.master.advance()
        #expect(other.take() == "")
        servers.stage.now += 1
        servers.master.advance()
        #expect(other.take() == ":1|$1|2" && servers.master.nextDeadline == nil)
        #expect(other.call("SET a 3\nWAIT 2 100\nGET a") == "+OK")
        var changes = 0
        other.onChange = { changes += 1 }
        servers.master.setLag(0, of: servers.replica(1))
        #expect(other.take() == ":2|$1|3" && changes == 1)
        #expect(servers.replica(1).connect().call("WAIT 0 0").hasPrefix("-ERR WAIT cannot be used with replica"))
    }

    @Test func `a failover loses the last writes, and the old master follows when it is back`() {
        servers.master.setLag(.max, of: servers.replica(1))
        for number in 1...5 { _ = servers.peer.call("SET a \(number)") }
        #expect(servers.master.links.map(\.missing) == [5, 0])
        let sentinel = servers.group.sentinels[0].connect()
        #expect(sentinel.call("SUBSCRIBE +switch-master").hasSuffix(":1"))
        let old = servers.group.failOver(losing: 2, to: 0)
        #expect(sentinel.take().hasSuffix("|$9|m h 1 h 2"))
        #expect(servers.master === servers.replica(1) && servers.master.data.text("a") == "3")
        #expect(servers.replica(2).data.text("a") == "3")
        // Until it learns it, the old master goes on, alone.
        #expect(servers.peer.call("SET a 9\nWAIT 1 5\n") == "+OK")
        #expect(old?.data.text("a") == "9" && servers.master.data.text("a") == "3")
        if let old { servers.group.rejoin(old) }
        #expect(servers.peer.isClosed && old?.data.text("a") == "3")
        #expect(servers.master.connect().call("SET a 4\nWAIT 2 5") == "+OK|:2")
        #expect(old?.data.text("a") == "4")
    }

    @Test func `a replica without its master says so, and has the same again afterwards`() {
        servers.master.setLag(0, of: servers.replica(1), isUp: false)
        _ = servers.peer.call("SET a 1")
        let peer = servers.replica(1).connect()
        #expect(peer.call("ROLE\nGET a").hasSuffix("$7|connect|:0|$-1"))
        servers.replica(1).conditions = .refusesStaleReads
        #expect(peer.call("GET a").hasPrefix("-MASTERDOWN "))
        servers.master.setLag(0, of: servers.replica(1))
        #expect(peer.call("GET a") == "$1|1")
    }

    @Test func `a master that restarts empty empties its replicas`() {
        _ = servers.peer.call("SET a 1")
        servers.master.restart()
        #expect(servers.peer.isClosed && servers.replica(1).data.text("a") == "1")
        servers.master.restart(keepsData: false)
        #expect(servers.replica(1).data.keys.isEmpty)
    }

    @Test func `sentinels name the servers that they know`() {
        let peers = servers.group.sentinels.map { $0.connect() }
        let before = peers[0].call("SENTINEL MASTER m\nSENTINEL REPLICAS m\nSENTINEL SENTINELS m\nROLE\nPING")
        #expect(before.contains("$2|ip|$1|h|$4|port|$1|1|") && before.contains("$12|config-epoch|$1|0|"))
        #expect(before.hasSuffix("*2|$8|sentinel|*1|$1|m|+PONG"))
        #expect(peers[0].call("SENTINEL MASTER x\nGET a").hasPrefix("-ERR No such master with that name|-ERR unknown"))
        servers.group.isolated = [servers.stage.address(9)]
        servers.group.failOver(losing: 0)
        #expect(peers[1].call("SENTINEL MASTER m").contains("|$4|port|$1|2|"))
        #expect(peers[1].call("SENTINEL REPLICAS m").contains("|$25|slave,s_down,disconnected"))
        // A sentinel that is cut off has the old view.
        #expect(peers[2].call("SENTINEL MASTER m").contains("|$4|port|$1|1|"))
    }
}

@Suite struct RedisClusterModelTests {
    private let stage = Stage()
    private let group: RedisGroup

    init() {
        let stage = stage
        group = RedisGroup(
            cluster: [[1, 4], [2, 5], [3, 6]].map { $0.map { stage.address($0) } }, engine: stage.engine,
            clock: stage.clock)
    }

    /// A key of a shard, with a hash tag.
    private func key(ofShard shard: Int) -> String {
        let names = (0...).lazy.map { "{\($0)}k" }
        return names.first { group.shard(of: RedisKey(Array($0.utf8))) == shard } ?? ""
    }

    @Test func `a node names the master of a key`() {
        let (key, other) = (key(ofShard: 0), key(ofShard: 2))
        let slot = RedisKey(Array(other.utf8)).slot
        let peer = group.master(ofShard: 0).connect()
        #expect(peer.call("SET \(key) 1\nGET \(other)") == "+OK|-MOVED \(slot) h:3")
        #expect(peer.call("DEL \(key) \(other)") == "-CROSSSLOT Keys in request don't hash to the same slot")
        #expect(peer.call(words: "EVAL", "return 1", "1", other) == "-MOVED \(slot) h:3")
        #expect(
            peer.call(words: "EVAL", "return redis.call('GET', '\(other)')", "1", key)
                .hasPrefix("-ERR Script attempted to access a non local key in a cluster node script: "))
        let slots = peer.call("CLUSTER SLOTS").replacing(/\$40\|[0-9a-f]{40}/, with: "ID")
        #expect(slots.hasPrefix("*3|*4|:0|:5460|*4|$1|h|:1|ID|*0|*4|$1|h|:4|ID|*0|*4|:5461|:10921|"))
        group.master(ofShard: 0).conditions = .clusterDown
        #expect(peer.call("GET \(key)\nPING") == "-CLUSTERDOWN The cluster is down|+PONG")
    }

    @Test func `a replica serves reads to those who accept them`() {
        let key = key(ofShard: 1)
        _ = group.master(ofShard: 1).connect().call("SET \(key) 1")
        let peer = group.shards[1][1].connect()
        let moved = "-MOVED \(RedisKey(Array(key.utf8)).slot) h:2"
        #expect(peer.call("GET \(key)\nREADONLY\nGET \(key)\nSET \(key) 2") == "\(moved)|+OK|$1|1|\(moved)")
    }

    @Test func `keys of a slot that is being moved are here or there`() {
        let tag = key(ofShard: 0)
        let slot = RedisKey(Array(tag.utf8)).slot
        let (source, target) = (group.master(ofShard: 0).connect(), group.master(ofShard: 1).connect())
        _ = source.call("SET \(tag)1 1\nSET \(tag)2 2\nSET \(tag)3 3")
        group.beginMoving(slot, to: 1)
        #expect(group.moveKeys(1, of: slot) == 2)
        let (ask, tryAgain) = ("-ASK \(slot) h:2", "-TRYAGAIN Multiple keys request during rehashing of slot")
        #expect(source.call("GET \(tag)1\nGET \(tag)2\nEXISTS \(tag)1 \(tag)2") == "\(ask)|$1|2|\(tryAgain)")
        let moved = "-MOVED \(slot) h:1"
        #expect(target.call("GET \(tag)1\nASKING\nGET \(tag)1\nGET \(tag)1") == "\(moved)|+OK|$1|1|\(moved)")
        #expect(target.call("ASKING\nEXISTS \(tag)1 \(tag)2") == "+OK|\(tryAgain)")
        group.endMoving(slot)
        #expect(source.call("GET \(tag)1") == "-MOVED \(slot) h:2" && target.call("GET \(tag)3") == "$1|3")
        #expect(group.shards[1][1].data.keys.count == 3 && group.shards[0][1].data.keys.isEmpty)
        #expect(source.call("CLUSTER SLOTS").hasPrefix("*5|"))
    }

    @Test func `messages reach the subscribers of every node that can be reached`() {
        let peers = group.nodes.map { $0.connect() }
        for peer in peers { _ = peer.call("SUBSCRIBE c") }
        group.isolated = [stage.address(6)]
        #expect(group.master(ofShard: 0).connect().call("PUBLISH c x") == ":1")
        #expect(peers.map { $0.take().isEmpty } == [false, false, false, false, false, true])
        #expect(group.shards[2][1].connect().call("PUBLISH c x") == ":1")
        #expect(peers.map { $0.take().isEmpty } == [true, true, true, true, true, false])
    }

    @Test func `after a failover the nodes name the new master, and the old one itself`() throws {
        let key = key(ofShard: 0)
        let slot = RedisKey(Array(key.utf8)).slot
        let (old, new) = (group.master(ofShard: 0), group.shards[0][1])
        old.setLag(.max, of: new)
        _ = old.connect().call("SET \(key) 1\nSET \(key) 2")
        group.isolated = [old.address]
        group.failOver(shard: 0, losing: 1)
        #expect(group.master(ofShard: 1).connect().call("GET \(key)") == "-MOVED \(slot) h:4")
        #expect(new.connect().call("GET \(key)") == "$1|1" && old.connect().call("GET \(key)") == "$1|2")
        group.isolated = []
        group.rejoin(old)
        #expect(old.connect().call("GET \(key)") == "-MOVED \(slot) h:4" && old.isReplica)
        #expect(new.connect().call("CLUSTER SLOTS").contains("*4|:0|:5460|"))
        #expect(group.unknownCommands.isEmpty)
    }
}
