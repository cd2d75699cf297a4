import Foundation
import MartletTesting
import Testing
import WorldRedis

/// What a server says of itself, and of other servers, is what its model says.
@Suite(.timeLimit(.minutes(2)), .enabled(if: RedisTwin.isModeled, "states are those of Redis 7.0"))
struct RedisModelStateTests {
    /// Commands of every kind that a state may refuse; a client that has subscribed can do little else.
    private static let commands = """
        PING
        FOO
        GET
        GET a
        SET a b
        DEL a
        HDEL h f
        HSET h f 1
        PEXPIRE h 100000
        PUBLISH c x
        CLIENT SETNAME x
        EVAL `return redis.call('GET', KEYS[1])` 1 a
        EVAL `return redis.call('SET', KEYS[1], 'b')` 1 a
        EVAL `redis.call('DEL', KEYS[1]) return redis.call('SET', KEYS[1], 'b')` 1 a
        EVAL `redis.call('PUBLISH', 'c', 'x') return redis.call('SET', KEYS[1], 'b')` 1 a
        EVAL `return redis.pcall('SET', KEYS[1], 'b')` 1 a
        SCRIPT LOAD `return 1`
        EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 0
        SCAN 0
        READONLY
        ROLE
        SELECT 0
        WAIT 0 1
        AUTH default x
        SUBSCRIBE c
        PING
        GET a
        """

    /// A state, and how a real server gets into it.
    struct State: Sendable, CustomTestStringConvertible {
        let setting: String
        let change: @Sendable (RedisModel) -> Void
        var testDescription: String { setting }
    }

    @Test(arguments: [
        State(setting: "PING") { _ in },
        State(setting: "CONFIG SET maxmemory 1") { $0.conditions = .outOfMemory },
        State(setting: "CONFIG SET min-replicas-to-write 1") { $0.conditions = .tooFewReplicas },
        State(setting: "CONFIG SET requirepass x") { $0.password = "x" },
        State(setting: "CONFIG SET maxclients 1") { $0.connectionError = "ERR max number of clients reached" },
        State(setting: "ACL SETUSER default -set -get -client|setname -subscribe -scan") { model in
            model.deniedCommands = ["set", "get", "client|setname", "subscribe", "scan"]
        },
    ])
    func `a state refuses the same commands`(state: State) throws {
        let server = try RedisServer()
        let twin = RedisTwin(of: server.port, .now())
        for words in ["SET a 1", "HSET h f 1 g 2"] { try twin.connect().send(lines: words) }
        let holding = state.setting.contains("maxclients") ? try RawSocket(connectingTo: .loopback(server.port)) : nil
        #expect(!(try server.command(state.setting)).hasPrefix("-"))
        state.change(twin.model)
        let client = try twin.connect()
        try client.send(lines: holding == nil ? Self.commands : "PING")
        holding?.close()
        #expect(twin.differences.isEmpty, "\(twin.differences.joined(separator: "\n"))")
    }

    @Test func `a server that is busy with a script refuses the same commands`() throws {
        let server = try RedisServer(extra: ["--lua-time-limit", "10"])
        let twin = RedisTwin(of: server.port, .now())
        let (client, other) = (try twin.connect(), try RawSocket(connectingTo: .loopback(server.port)))
        try other.send("EVAL \"while true do end\" 0\r\n")
        try waitUntil("the script is under way") { try server.command("PING").hasPrefix("-BUSY") }
        twin.model.conditions = .busy
        try client.send(lines: Self.commands)
        #expect(try server.command("SCRIPT KILL") == "+OK\r\n")
        #expect(twin.differences.isEmpty, "\(twin.differences.joined(separator: "\n"))")
    }

    @Test func `a server that cannot save refuses the same commands, also as a replica`() throws {
        let folder = try TemporaryFolder()
        let server = try RedisServer(extra: ["--dir", folder.path])
        let twin = RedisTwin(of: server.port, .now())
        _ = try server.command("CONFIG SET save \"3600 1\"")
        try FileManager.default.removeItem(atPath: folder.path)
        _ = try server.command("BGSAVE")
        try waitUntil("the snapshot has failed") {
            try server.command("INFO persistence").contains("rdb_last_bgsave_status:err")
        }
        twin.model.conditions = .cannotSave
        try twin.connect().send(lines: Self.commands)
        let master = RedisModel.now(port: 1)
        twin.model.follow(master)
        master.setLag(.max, of: twin.model, isUp: false)
        _ = try server.command("REPLICAOF 127.0.0.1 1")
        try twin.connect().send(lines: Self.commands)
        #expect(twin.differences.isEmpty, "\(twin.differences.joined(separator: "\n"))")
    }

    @Test func `a server that reads its data refuses the same commands`() throws {
        let server = try RedisServer()
        let twin = RedisTwin(of: server.port, .now())
        _ = try server.command("EVAL \"for i = 1, 30000 do redis.call('SET', 'other:' .. i, i) end\" 0")
        _ = try server.command("SAVE")
        try server.stop()
        try server.restart(extra: ["--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024"])
        twin.model.conditions = .loading
        try twin.connect().send(lines: Self.commands)
        #expect(try server.command("PING").hasPrefix("-LOADING"))
        #expect(twin.differences.isEmpty, "\(twin.differences.joined(separator: "\n"))")
    }

    @Test func `keys that have expired are gone for every command`() throws {
        let server = try RedisServer()
        let twin = RedisTwin(of: server.port, .now())
        let client = try twin.connect()
        let keys = (0..<12).map { "k\($0)" }
        for key in keys { try client.send(lines: "SET \(key) 1 PX 20") }
        try client.send(lines: "HSET h f 1\nPEXPIRE h 20\nZADD z 1 a\nPEXPIRE z 20\nSET left 1 PX 100000")
        try waitUntil("the keys have expired") {
            let isGone = try server.command("EXISTS z h k0 k11") == ":0\r\n"
            return isGone && twin.model.change { $0.keys.count } == 1
        }
        let rest = [
            "GET", "EXISTS", "DEL", "TYPE", "PTTL", "STRLEN", "INCR", "GETDEL", "HGETALL", "ZRANGE k9 0 -1",
            "SET k10 2 NX",
            "PEXPIRE k11 1000",
        ]
        for (key, words) in zip(keys, rest) { try client.send(lines: words.contains(" ") ? words : "\(words) \(key)") }
        try client.send(lines: "SCAN 0\nHSET h g 2\nHGETALL h\nPTTL h\nZADD z 2 b\nZRANGE z 0 -1\nHDEL z a\nGET left")
        #expect(twin.differences.isEmpty, "\(twin.differences.joined(separator: "\n"))")
    }

    @Test func `master and replica say the same, while they are connected and afterwards`() throws {
        let (server, second) = (try RedisServer(), try RedisServer())
        let model = RedisModel.now(port: server.port)
        let (master, replica) = (
            RedisTwin(of: server.port, model), RedisTwin(of: second.port, .now(port: second.port))
        )
        let writer = try master.connect()
        try writer.send(lines: "SET a 1\nHSET h f 1 g 2")
        _ = try second.command("REPLICAOF 127.0.0.1 \(server.port)")
        try waitUntil("the replica is in sync") {
            try second.command("INFO replication").contains("master_link_status:up")
        }
        replica.model.follow(model)
        let reader = try replica.connect()
        try writer.send(lines: "SET b 2\nWAIT 1 20000\nWAIT 2 20\nPUBLISH c x\nWAIT 1 20000\nROLE")
        try reader.send(lines: "GET b\n" + Self.commands)
        second.freeze(true)
        model.setLag(.max, of: replica.model)
        try writer.send(lines: "SET b 3\nWAIT 1 20\nWAIT 0 0")
        second.freeze(false)
        model.setLag(0, of: replica.model)
        try writer.send(lines: "WAIT 1 20000")
        _ = try second.command("CONFIG SET min-replicas-to-write 1")
        replica.model.conditions = .tooFewReplicas
        try replica.connect().send(lines: Self.commands)
        _ = try second.command("CONFIG SET min-replicas-to-write 0")
        replica.model.conditions = []
        for twin in [master, replica] { #expect(twin.differences.isEmpty, "\(twin.differences)") }
        try server.stop()
        model.setLag(.max, of: replica.model, isUp: false)
        try waitUntil("the replica has lost its master") {
            try second.command("INFO replication").contains("master_link_status:down")
        }
        try replica.connect().send(lines: Self.commands)
        _ = try second.command("CONFIG SET replica-serve-stale-data no")
        replica.model.conditions = .refusesStaleReads
        try replica.connect().send(lines: Self.commands)
        #expect(replica.differences.isEmpty, "\(replica.differences.joined(separator: "\n"))")
    }

    @Test func `sentinels name the same servers`() throws {
        let servers = try RedisSentinelServers(replicas: 1)
        func addresses(_ ports: [UInt16]) -> [RedisAddress] {
            ports.map { RedisAddress(host: "127.0.0.1", port: Int($0)) }
        }
        let group = RedisGroup(
            at: addresses(servers.all.map(\.port)), sentinels: addresses(servers.sentinels.map(\.port)),
            name: "mymaster", engine: ScriptEngine()
        ) { 0 }
        for (sentinel, model) in zip(servers.sentinels, group.sentinels) {
            try waitUntil("the sentinel is connected with all servers") {
                try ["MASTER", "REPLICAS", "SENTINELS"].allSatisfy { what in
                    try !sentinel.command("SENTINEL \(what) mymaster").contains("disconnected")
                }
            }
            let twin = RedisTwin(of: sentinel.port, model)
            try twin.connect().send(
                lines: """
                    PING
                    CLIENT SETNAME x
                    SENTINEL MASTER mymaster
                    SENTINEL REPLICAS mymaster
                    SENTINEL SENTINELS mymaster
                    SENTINEL MASTER other
                    ROLE
                    GET a
                    SUBSCRIBE +switch-master
                    PING
                    """)
            #expect(twin.differences.isEmpty, "\(twin.differences.joined(separator: "\n"))")
        }
    }

    @Test func `the nodes of a cluster send clients to the same nodes, also while a slot is moved`() throws {
        let cluster = try RedisClusterServers()
        let replica = try cluster.addReplica(of: cluster.servers[0])
        let servers = cluster.servers + [replica]
        let addresses = servers.map { RedisAddress(host: "127.0.0.1", port: Int($0.port)) }
        let group = RedisGroup(
            cluster: [[addresses[0], addresses[3]], [addresses[1]], [addresses[2]]], engine: ScriptEngine()
        ) { 1_800_000_000_000 }
        let twins = zip(
            servers,
            group.nodes.sorted { first, second in
                let ports = addresses.map(\.port)
                return (ports.firstIndex(of: first.address.port) ?? 0)
                    < (ports.firstIndex(of: second.address.port) ?? 0)
            }
        ).map { RedisTwin(of: $0.port, $1) }
        func compare(_ lines: String) throws {
            for (index, twin) in twins.enumerated() {
                try twin.connect().send(lines: lines)
                #expect(twin.differences.isEmpty, "\(index): \(twin.differences.joined(separator: "\n"))")
            }
        }
        try compare(
            "SET foo 1\nSET {bar}2 1\nSET {bar}1 1\nSET bar 1\nDEL bar {bar}x\nDEL bar foo\nCLUSTER SLOTS\nASKING")
        try compare(Self.clusterCommands)
        try compare("READONLY\n" + Self.clusterCommands)
        // `bar` is of the first node.
        let slot: UInt16 = 5061
        try twins[0].connect().send(lines: "SET bar 1\nSET {bar}1 2\nSET {bar}2 3")
        group.beginMoving(slot, to: 1)
        try cluster.move(Int(slot), from: servers[0], to: servers[1]) {
            group.moveKeys(1, of: slot)
            try compare(Self.clusterCommands)
        }
        group.endMoving(slot)
        for server in servers {
            try waitUntil("every node knows where the slot is") {
                try server.command("CLUSTER SLOTS").contains("*4\r\n:\(slot)\r\n:\(slot)\r\n") == false
                    && server.command("CLUSTER SLOTS").contains(":\(slot)\r\n:\(slot)\r\n")
            }
        }
        try compare(Self.clusterCommands + "\nCLUSTER SLOTS")
    }

    /// `bar` has one slot with its likes, `foo` another one.
    private static let clusterCommands = """
        GET bar
        GET foo
        GET {bar}none
        SET {foo}none 1
        DEL {foo}none
        EXISTS bar {bar}1
        EXISTS bar {bar}none
        EXISTS {bar}none {bar}none
        EXISTS {bar}none {bar}other
        EXISTS bar foo
        EVAL `return redis.call('GET', KEYS[1])` 1 bar
        EVAL `return redis.call('GET', KEYS[1])` 1 foo
        EVAL `return redis.call('GET', '{bar}none')` 1 bar
        EVAL `return redis.call('GET', 'foo')` 1 bar
        EVAL `return redis.call('GET', 'bar')` 0
        EVAL `return redis.call('SET', KEYS[1], 1)` 1 {foo}x
        EVAL `return 1` 2 bar {bar}none
        EVAL `return 1` 2 bar foo
        ASKING
        GET bar
        GET bar
        ASKING
        EXISTS bar {bar}none
        ASKING
        EVAL `return redis.call('GET', KEYS[1])` 1 bar
        ASKING
        GET {bar}none
        ASKING
        EXISTS {bar}none {bar}none
        ASKING
        PING
        GET bar
        PUBLISH c x
        SELECT 1
        SELECT 0
        """
}
