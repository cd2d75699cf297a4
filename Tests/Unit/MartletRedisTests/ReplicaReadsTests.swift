import MartletCore
import Testing

@testable import MartletRedis

@Suite struct ReplicaReadsTests {
    private let masters = [node(1), node(2)]

    /// The replicas of the first master, connected and linked, after a read has needed them.
    private func connected(_ replicas: [UInt16] = [11, 12]) -> ReplicaReads {
        var reads = ReplicaReads(asks: false)
        _ = reads.learnt([node(1): replicas.map(node), node(2): [node(21)]], masters: masters)
        _ = reads.choose(of: node(1), isMasterReady: true, at: time(0))
        for replica in reads.opened {
            #expect(reads.ready(replica) == [.check(replica)])
            reads.checked(replica, isLinked: true)
        }
        return reads
    }

    private func chosen(
        _ reads: inout ReplicaReads, of master: UInt16 = 1, isMasterReady: Bool = true, at instant: Int = 1
    ) -> Set<RedisURL.Address> {
        Set(
            (0..<8).compactMap { _ in
                reads.choose(of: node(master), isMasterReady: isMasterReady, at: time(instant)).replica
            })
    }

    @Test func `nothing is connected or asked before a read needs it`() {
        var reads = ReplicaReads(asks: true)
        #expect(reads.nextTick == nil)
        #expect(reads.tick(at: time(0)).isEmpty && reads.mastersChanged(masters, at: time(0)).isEmpty)
        #expect(reads.learnt([node(1): [node(11)]], masters: masters).isEmpty)
        let (replica, actions) = reads.choose(of: node(1), isMasterReady: true, at: time(1))
        #expect(replica == nil && actions == [.ask, .open(node(11))])
        #expect(reads.nextTick == time(1001))
        #expect(reads.choose(of: node(1), isMasterReady: true, at: time(2)).actions.isEmpty)
    }

    @Test func `a replica serves reads when it has said that its link works`() {
        var reads = ReplicaReads(asks: false)
        _ = reads.learnt([node(1): [node(11)]], masters: masters)
        _ = reads.choose(of: node(1), isMasterReady: true, at: time(0))
        #expect(chosen(&reads).isEmpty)
        _ = reads.ready(node(11))
        #expect(chosen(&reads).isEmpty)
        reads.checked(node(11), isLinked: true)
        #expect(chosen(&reads) == [node(11)])
        reads.checked(node(11), isLinked: false)
        #expect(chosen(&reads).isEmpty)
        #expect(chosen(&reads, isMasterReady: false) == [node(11)])
        reads.down(node(11))
        #expect(chosen(&reads, isMasterReady: false).isEmpty)
        _ = reads.ready(node(11))
        #expect(chosen(&reads).isEmpty, "the check is of the connection before")
    }

    @Test func `reads take turns, and only among replicas of their own master`() {
        var reads = connected()
        #expect(chosen(&reads) == [node(11), node(12)])
        #expect(chosen(&reads, of: 2, isMasterReady: false).isEmpty)
        #expect(reads.opened.contains(node(21)))
        reads.checked(node(12), isLinked: false)
        // One that is linked is better even while the master is unavailable.
        #expect(chosen(&reads, isMasterReady: false) == [node(11)])
    }

    @Test func `only some are connected, and others replace those that do not respond, one a second`() {
        var reads = connected([11, 12, 13, 14])
        #expect(reads.opened == [node(11), node(12)])
        reads.down(node(11))
        reads.down(node(12))
        #expect(reads.tick(at: time(999)).isEmpty)
        #expect(reads.tick(at: time(1000)) == [.close(node(11)), .open(node(13))])
        #expect(reads.tick(at: time(1001)).isEmpty)
        reads.down(node(13))
        #expect(reads.tick(at: time(2000)) == [.close(node(12)), .open(node(14))])
        _ = reads.ready(node(14))
        #expect(reads.tick(at: time(3000)) == [.check(node(14)), .close(node(13)), .open(node(11))])
    }

    @Test func `the only replica is kept, because its connection tries again`() {
        var reads = connected([11])
        reads.down(node(11))
        #expect(reads.tick(at: time(1000)).isEmpty)
        #expect(reads.ready(node(11)) == [.check(node(11))])
    }

    @Test func `replicas are checked every second`() {
        var reads = connected()
        #expect(reads.nextTick == time(1000))
        #expect(reads.tick(at: time(1000)) == [.check(node(11)), .check(node(12))])
        #expect(reads.nextTick == time(2000))
    }

    @Test func `a replica that two lists leave out is given up`() {
        var reads = connected()
        #expect(reads.learnt([node(1): [node(12)]], masters: masters).isEmpty)
        #expect(reads.learnt([node(1): [node(11), node(12)]], masters: masters).isEmpty)
        #expect(reads.learnt([node(1): [node(12)]], masters: masters).isEmpty)
        #expect(reads.learnt([node(1): [node(12)]], masters: masters) == [.close(node(11))])
        #expect(chosen(&reads) == [node(12)])
    }

    @Test func `a replica that has become a master is given up, and so are those of a master that is none`() {
        var reads = connected()
        #expect(
            Set(reads.mastersChanged([node(11), node(2)], at: time(5)).map(\.description))
                == ["close 10.0.0.1:11", "close 10.0.0.1:12"])
        #expect(reads.opened.isEmpty && reads.nextTick == nil)
        #expect(chosen(&reads, isMasterReady: false).isEmpty)
        // It is no replica of itself, whatever a server says.
        #expect(reads.learnt([node(11): [node(11), node(2), node(12)]], masters: [node(11), node(2)]).isEmpty)
        #expect(reads.choose(of: node(11), isMasterReady: true, at: time(6)).actions == [.open(node(12))])
    }

    @Test func `lists are asked for every second until there is one, then every five`() {
        var reads = ReplicaReads(asks: true)
        #expect(reads.choose(of: node(1), isMasterReady: true, at: time(0)).actions == [.ask])
        #expect(reads.tick(at: time(500)).isEmpty)
        #expect(reads.tick(at: time(1000)) == [.ask])
        _ = reads.learnt([node(1): [node(11)]], masters: masters)
        #expect(reads.tick(at: time(5999)).isEmpty)
        #expect(reads.tick(at: time(6000)) == [.ask])
    }

    @Test func `lists and masters are bounded`() {
        var reads = ReplicaReads(asks: false)
        let all = (1...100).map { node(UInt16($0)) }
        let lists = all.map { master in (master, (0..<100).map { _ in node(UInt16.random(in: 1000...9999)) }) }
        _ = reads.learnt(Dictionary(uniqueKeysWithValues: lists), masters: all)
        for master in all { _ = reads.choose(of: master, isMasterReady: true, at: time(0)) }
        #expect(reads.opened.count <= ReplicaReads.maximumMasters * ReplicaReads.connectedPerMaster)
        #expect(!reads.opened.isEmpty)
    }
}

extension ReplicaReads.Action {
    fileprivate var description: String {
        switch self {
        case .open(let node): "open \(node)"
        case .close(let node): "close \(node)"
        case .check(let node): "check \(node)"
        case .ask: "ask"
        }
    }
}

@Suite struct ReplicaListTests {
    private func bytes(_ text: String) -> RedisReply { .bytes(Array(text.utf8)) }

    private func server(_ host: RedisReply, _ port: Int64) -> RedisReply {
        .array([host, .integer(port), bytes("id")])
    }

    @Test func `maps of slots list replicas behind their master`() {
        let reply = RedisReply.array([
            .array([
                .integer(0), .integer(9), server(bytes("10.0.0.1"), 1), server(bytes("10.0.0.1"), 11),
                server(.nothing, 12),
            ]),
            .array([.integer(10), .integer(19), server(bytes("10.0.0.1"), 1), server(bytes("10.0.0.1"), 11)]),
            .array([.integer(20), .integer(29), server(bytes("10.0.0.1"), 2), server(bytes("a b"), 21), .nothing]),
            .nothing,
        ])
        #expect(
            ReplicaLists.ofSlots(reply, from: node(9)) == [node(1): [node(11), node(12)], node(2): []])
        #expect(ReplicaLists.ofSlots(.integer(1), from: node(9)).isEmpty)
    }

    @Test func `sentinels say which replicas they cannot reach`() {
        func fields(_ port: String, _ flags: String) -> RedisReply {
            .array(["ip", "10.0.0.1", "port", port, "flags", flags].map(bytes))
        }
        let reply = RedisReply.array([
            fields("11", "slave"), fields("12", "s_down,slave"), fields("13", "slave,disconnected"),
            fields("0", "slave"), .nothing, fields("14", "slave"),
        ])
        #expect(ReplicaLists.ofSentinel(reply) == [node(11), node(14)])
        #expect(ReplicaLists.ofSentinel(.nothing) == nil)
    }

    @Test func `a master lists who receives from it`() {
        func role(_ list: [RedisReply]) -> RedisReply { .array([bytes("master"), .integer(7), .array(list)]) }
        func replica(_ host: String, _ port: String) -> RedisReply { .array([host, port, "7"].map(bytes)) }
        #expect(
            ReplicaLists.ofMaster(role([replica("10.0.0.1", "11"), replica("", "12"), replica("10.0.0.1", "x")]))
                == [node(11)])
        #expect(ReplicaLists.ofMaster(role([])) == [])
        #expect(ReplicaLists.ofMaster(.array([bytes("slave"), .integer(1), .array([])])) == nil)
        #expect(ReplicaLists.ofMaster(.nothing) == nil)
    }

    @Test(arguments: [
        (["slave", "h", "1", "connected", "9"], true), (["slave", "h", "1", "connect", "9"], false),
        (["slave", "h", "1", "sync", "9"], false), (["slave", "h", "1"], false),
        (["master", "h", "1", "connected", "9"], false), ([], false),
    ]) func `a replica says whether it receives`(_ words: [String], _ isLinked: Bool) {
        #expect(ReplicaLists.isLinked(.array(words.map(bytes))) == isLinked)
    }
}
