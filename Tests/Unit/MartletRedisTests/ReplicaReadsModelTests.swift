import MartletCore
import MartletTesting
import Testing

@testable import MartletRedis

/// Masters and replicas in simulated time, which fail, are listed wrongly and exchange their parts, under reads.
///
/// What must hold: a replica is opened and closed in turn, few are open of each master, a read goes to one that is
/// connected, and to one without a link only while the master is unavailable; and when all is well again, replicas serve.
private struct ReplicaModel {
    private var random: SeededGenerator
    private var reads: ReplicaReads
    private var masters: [RedisURL.Address]
    /// The replicas as they are, by master.
    private var parts: [RedisURL.Address: [RedisURL.Address]] = [:]
    private var isUp: [RedisURL.Address: Bool] = [:]
    private var isLinked: [RedisURL.Address: Bool] = [:]
    /// Open connections, and whether they are ready.
    private var open: [RedisURL.Address: Bool] = [:]
    /// What each connected replica has last said of its link.
    private var reported: [RedisURL.Address: Bool] = [:]
    private var now = 0
    private var asked = 0
    private(set) var problems: [String] = []
    private(set) var served = 0

    init(seed: UInt64) {
        random = SeededGenerator(seed: seed)
        reads = ReplicaReads(asks: Bool.random(using: &random))
        masters = (1...UInt16.random(in: 1...3, using: &random)).map(node)
        for (index, master) in masters.enumerated() {
            parts[master] = (0..<UInt16.random(in: 0...4, using: &random)).map { node(UInt16(index + 1) * 100 + $0) }
        }
        for address in masters + parts.values.flatMap({ $0 }) { (isUp[address], isLinked[address]) = (true, true) }
    }

    mutating func run(steps: Int) {
        for step in 0..<(steps * 2) {
            now += Int.random(in: 1...400, using: &random)
            if step < steps { disturb() } else if step == steps { heal() }
            connect()
            if let next = reads.nextTick, next <= time(now) { perform(reads.tick(at: time(now))) }
            if step.isMultiple(of: 5) { list(isRight: step >= steps) }
            for master in masters { read(master, isLate: step > steps + 100) }
        }
        let length = now / 1000 + 2
        if asked > 3 * length { problems.append("\(asked) questions in \(length) s") }
    }

    private mutating func disturb() {
        guard let one = isUp.keys.sorted(by: { $0.description < $1.description }).randomElement(using: &random) else {
            return
        }
        switch Int.random(in: 0..<8, using: &random) {
        case 0, 1: isUp[one]?.toggle()
        case 2, 3: isLinked[one]?.toggle()
        case 4: promote()
        default: break
        }
        for (replica, isReady) in open where isReady && isUp[replica] == false {
            open[replica] = false
            reads.down(replica)
        }
    }

    private mutating func promote() {
        guard let old = masters.randomElement(using: &random), var list = parts[old], !list.isEmpty else { return }
        let new = list.removeFirst()
        masters = masters.map { $0 == old ? new : $0 }
        parts[old] = nil
        parts[new] = list + [old]
        perform(reads.mastersChanged(masters, at: time(now)))
    }

    private mutating func heal() {
        for address in isUp.keys { (isUp[address], isLinked[address]) = (true, true) }
    }

    private mutating func connect() {
        for (replica, isReady) in open.sorted(by: { $0.key.description < $1.key.description }) where !isReady {
            if isUp[replica] == true {
                (open[replica], reported[replica]) = (true, nil)
                perform(reads.ready(replica))
            } else {
                reads.down(replica)
            }
        }
    }

    private mutating func list(isRight: Bool) {
        var lists = parts
        if !isRight, Bool.random(using: &random) {
            for master in masters { lists[master]?.removeAll { _ in Bool.random(using: &random) } }
            lists[node(999)] = [node(998)]
        }
        perform(reads.learnt(lists, masters: masters))
    }

    private mutating func read(_ master: RedisURL.Address, isLate: Bool) {
        let isMasterReady = isUp[master] == true
        let (replica, actions) = reads.choose(of: master, isMasterReady: isMasterReady, at: time(now))
        perform(actions)
        guard let replica else {
            if isLate, parts[master]?.isEmpty == false { problems.append("\(master) is not read from a replica") }
            return
        }
        served += 1
        if isMasterReady, reported[replica] != true { problems.append("\(replica) has no link, and there is a master") }
        if open[replica] != true { problems.append("\(replica) is not connected") }
        if masters.contains(replica) { problems.append("\(replica) is a master") }
        if isLate, parts[master]?.contains(replica) != true { problems.append("\(replica) is not of \(master)") }
    }

    private mutating func perform(_ actions: [ReplicaReads.Action]) {
        for action in actions {
            switch action {
            case .open(let replica):
                if open.updateValue(false, forKey: replica) != nil { problems.append("\(replica) opened twice") }
            case .close(let replica):
                if open.removeValue(forKey: replica) == nil { problems.append("\(replica) closed twice") }
            case .check(let replica):
                if open[replica] != true { problems.append("\(replica) checked") }
                // Some questions are never answered.
                guard Int.random(in: 0..<4, using: &random) > 0 else { continue }
                reported[replica] = isLinked[replica] == true
                reads.checked(replica, isLinked: isLinked[replica] == true)
            case .ask: asked += 1
            }
        }
        if Set(open.keys) != Set(reads.opened) { problems.append("open: \(open.keys), not \(reads.opened)") }
        if open.count > masters.count * ReplicaReads.connectedPerMaster { problems.append("\(open.count) are open") }
    }
}

@Suite struct ReplicaReadsModelTests {
    @Test(arguments: 1...200) func `replicas serve reads through failures, wrong lists and promotions`(_ seed: Int) {
        var model = ReplicaModel(seed: UInt64(seed))
        model.run(steps: 300)
        #expect(model.problems.isEmpty, "seed \(seed): \(model.problems.prefix(5))")
    }

    @Test func `the model's reads are served`() {
        let served = (1...20).map { seed in
            var model = ReplicaModel(seed: UInt64(seed))
            model.run(steps: 100)
            return model.served
        }
        #expect(served.filter { $0 > 0 }.count > 10)
    }
}
