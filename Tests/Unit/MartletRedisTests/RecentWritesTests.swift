import MartletCore
import Testing

@testable import MartletRedis

@Suite struct RecentWritesTests {
    private func replay(_ kind: RedisReplay.Kind, _ name: String, number: UInt64? = nil) -> RedisReplay {
        RedisReplay(kind, RedisCommand([Array(name.utf8)], key: Array(name.utf8)), number: number)
    }

    private func names(_ commands: [RedisCommand]) -> [String] {
        commands.map { String(decoding: $0.arguments[0], as: UTF8.self) }
    }

    @Test func `keeps writes from 2 s before the loss of a master, and ends for 60 s`() {
        var recent = RecentWrites()
        recent.add(replay(.write, "a"), at: time(0))
        recent.add(replay(.end, "b"), at: time(0))
        recent.add(replay(.write, "c"), at: time(1500))
        let early = recent.commands(at: time(9000), lostAt: time(2000)) { _ in true }
        #expect(names(early.writes) == ["a", "c"] && names(early.ends) == ["b"])
        let later = recent.commands(at: time(9000), lostAt: time(2001)) { _ in true }
        #expect(names(later.writes) == ["c"] && names(later.ends) == ["b"])
        #expect(recent.commands(at: time(31_501), lostAt: time(2000)) { _ in true }.writes.isEmpty)
        let last = recent.commands(at: time(60_001), lostAt: time(2000)) { _ in true }
        #expect(last.writes.isEmpty && last.ends.isEmpty && recent.count == 0)
    }

    @Test func `selects what belongs to the slots of the new master`() {
        var recent = RecentWrites()
        for name in ["a", "b", "c"] { recent.add(replay(.write, name), at: time(0)) }
        let slot = HashSlot(of: Array("b".utf8))
        #expect(names(recent.commands(at: time(1), lostAt: time(1)) { $0 == slot }.writes) == ["b"])
    }

    @Test func `brings nothing back that has ended here or elsewhere`() {
        var recent = RecentWrites()
        recent.add(replay(.write, "here", number: 1), at: time(0))
        recent.add(replay(.write, "elsewhere", number: 2), at: time(0))
        recent.add(replay(.write, "alive", number: 3), at: time(0))
        recent.add(replay(.end, "end", number: 1), at: time(10))
        recent.forget([2])
        let due = recent.commands(at: time(20), lostAt: time(20)) { _ in true }
        #expect(names(due.writes) == ["alive"] && names(due.ends) == ["end"])
    }

    @Test func `keeps the ended sessions of many`() {
        var recent = RecentWrites()
        recent.add(replay(.write, "first", number: 1), at: time(0))
        for number in 2..<50_000 { recent.forget([UInt64(number)]) }
        recent.forget([1])
        #expect(recent.commands(at: time(1), lostAt: time(1)) { _ in true }.writes.isEmpty)
        recent.add(replay(.write, "second", number: 2), at: time(31_000))
        #expect(names(recent.commands(at: time(31_000), lostAt: time(31_000)) { _ in true }.writes) == ["second"])
    }

    @Test func `is bounded`() {
        var recent = RecentWrites()
        for number in 0..<40_000 {
            recent.add(replay(.write, "w\(number)"), at: time(0))
            recent.add(replay(.end, "e\(number)"), at: time(0))
        }
        let due = recent.commands(at: time(1), lostAt: time(1)) { _ in true }
        #expect(due.writes.count == 4096 && due.ends.count == 16_384)
        #expect(names(due.writes).last == "w39999" && names(due.ends).last == "e39999")
        let large = RedisReplay(
            .write, RedisCommand([[UInt8](repeating: 0, count: 9 * 1024 * 1024)], key: [0x61]), number: nil)
        recent.add(large, at: time(2))
        #expect(recent.commands(at: time(2), lostAt: time(2)) { _ in true }.writes.isEmpty)
    }
}

@Suite struct LateWritesTests {
    private func record(
        _ name: String, _ repeats: inout RepeatedWrites, at milliseconds: Int, of host: String = "a"
    ) -> Bool {
        let replay = RedisReplay(.end, RedisCommand([Array(name.utf8)], key: Array(name.utf8)), number: nil)
        let master = RedisURL.Address.tcp(host: host, port: 1)
        return repeats.record(replay, at: time(milliseconds), lateness: .seconds(3)) { _ in master }
    }

    @Test func `what is recorded after the change of its master is written again`() {
        var repeats = RepeatedWrites()
        #expect(!record("b", &repeats, at: 0))
        var changes = MasterChanges()
        changes.moved([HashSlot(of: Array("b".utf8))])
        changes.connected(.tcp(host: "new", port: 1))
        repeats.wroteAgain(changes, at: time(10), lateness: .seconds(3))
        #expect(record("b", &repeats, at: 20) && !record("c", &repeats, at: 20))
        #expect(record("c", &repeats, at: 20, of: "new"))
        #expect(record("b", &repeats, at: 3010) && !record("b", &repeats, at: 3011))
        #expect(repeats.recent.count == 6)
    }

    @Test func `many changes are one of all masters`() {
        var repeats = RepeatedWrites()
        for number in 0..<9 {
            var changes = MasterChanges()
            changes.connected(.tcp(host: "new-\(number)", port: 1))
            repeats.wroteAgain(changes, at: time(number), lateness: .seconds(3))
        }
        #expect(record("c", &repeats, at: 20))
    }
}

@Suite struct ReplayQueueTests {
    private func commands(_ names: [String]) -> [RedisCommand] {
        names.map { RedisCommand([Array($0.utf8)], key: nil) }
    }

    @Test func `sends a few at a time, in order, and ends after all writes have been executed`() {
        var queue = ReplayQueue()
        queue.add(
            writes: commands((0..<40).map { "w\($0)" }), ends: commands((0..<40).map { "e\($0)" }))
        var sent: [String] = []
        var inFlight = 0
        var most = 0
        while !queue.isEmpty {
            let due = queue.next()
            sent += due.map { String(decoding: $0.arguments[0], as: UTF8.self) }
            inFlight += due.count
            most = max(most, inFlight)
            if sent.last?.first == "e" { #expect(sent.count > 40 && inFlight <= sent.count - 40) }
            queue.finished(nil)
            inFlight -= 1
        }
        #expect(sent == (0..<40).map { "w\($0)" } + (0..<40).map { "e\($0)" })
        #expect(most == 32)
    }

    @Test func `sends what is of one slot one after the other, and other slots meanwhile`() {
        var queue = ReplayQueue()
        let slots = ["a", "b"].map { HashSlot(of: Array($0.utf8)) }
        func command(_ name: String) -> RedisCommand {
            RedisCommand([Array(name.utf8)], key: [Array(name.utf8)[0]])
        }
        func sent() -> [String] { queue.next().map { String(decoding: $0.arguments[0], as: UTF8.self) } }
        queue.add(writes: ["a1", "a2", "b1", "a3"].map(command), ends: ["a4", "b2"].map(command))
        #expect(sent() == ["a1", "b1"])
        queue.finished(slots[0])
        #expect(sent() == ["a2"])
        queue.finished(slots[1])
        #expect(sent() == [])
        queue.finished(slots[0])
        #expect(sent() == ["a3"])
        queue.finished(slots[0])
        #expect(sent() == ["a4", "b2"])
        queue.add(writes: ["a5"].map(command), ends: [])
        #expect(sent() == [])
        queue.removeAll()
        for slot in slots { queue.finished(slot) }
        #expect(sent() == [] && queue.isEmpty)
        queue.add(writes: ["a6"].map(command), ends: [])
        #expect(sent() == ["a6"])
    }
}

@Suite struct MasterChangesTests {
    private let first = RedisURL.Address.tcp(host: "a", port: 1)
    private let second = RedisURL.Address.tcp(host: "b", port: 1)

    @Test func `keeps what moved until its server is there`() {
        var changes = MasterChanges()
        changes.lost(at: time(5))
        changes.lost(at: time(7))
        changes.moved([HashSlot(1), HashSlot(2)])
        #expect(changes.lostAt == time(5))
        #expect(changes.contains(HashSlot(1), of: first) && !changes.contains(HashSlot(3), of: first))
        changes.written(at: time(9)) { $0 == .slot(HashSlot(1)) }
        #expect(!changes.contains(HashSlot(1), of: first) && changes.contains(HashSlot(2), of: first))
        #expect(changes.lostAt == time(5))
        changes.written(at: time(9)) { _ in true }
        #expect(!changes.contains(HashSlot(2), of: first) && changes.lostAt == nil)
        changes.failed()
        #expect(changes.contains(HashSlot(3), of: second) && changes.lostAt == time(5))
    }

    @Test func `includes all of a server that is there again`() {
        var changes = MasterChanges()
        changes.connected(first)
        #expect(changes.contains(HashSlot(9), of: first) && !changes.contains(HashSlot(9), of: second))
        changes.moved(nil)
        #expect(changes.contains(HashSlot(9), of: second))
        changes.written(at: time(9)) { $0 == .node(first) }
        #expect(changes.contains(HashSlot(9), of: second))
    }
}

@Suite struct RepeatedWritesTests {
    @Test func `holds the commands of new masters until everything is written again`() throws {
        var repeats = RepeatedWrites()
        let (first, second) = (RedisURL.Address.tcp(host: "a", port: 1), RedisURL.Address.tcp(host: "b", port: 1))
        repeats.holding = [first, second]
        repeats.held = [
            .init(ticket: 1, address: first, isAsking: false), .init(ticket: 2, address: second, isAsking: true),
        ]
        repeats.queue.add(writes: [RedisCommand([Array("SET".utf8)], key: Array("a".utf8))], ends: [])
        let command = try #require(repeats.queue.next().first)
        #expect(repeats.released().isEmpty)
        // One that was lost holds nothing up.
        repeats.holding.remove(first)
        #expect(repeats.released().map(\.ticket) == [1])
        repeats.queue.finished(command.slot)
        #expect(repeats.released().map(\.ticket) == [2] && repeats.holding.isEmpty && repeats.held.isEmpty)
    }
}
