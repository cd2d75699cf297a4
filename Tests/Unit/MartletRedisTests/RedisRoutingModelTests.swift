import Foundation
import MartletCore
import Testing

@testable import MartletRedis

/// A random number generator with a seed.
private struct Seeded: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

/// A cluster in simulated time: nodes that fail, come back with an old map, and exchange slots, under commands.
///
/// What must hold: every command ends once, at its deadline at the latest; one that must not be repeated is executed at
/// most once; the number of nodes is bounded; and when the cluster is whole again, commands succeed.
private struct ClusterModel {
    private enum Event {
        case reply(UInt64, RedisRouting.Outcome, node: RedisURL.Address, epoch: Int)
        case map(RedisURL.Address, RedisReply?)
        case connected(RedisURL.Address, epoch: Int)
        case failed(RedisURL.Address, epoch: Int)
        case tick
        case submit
        case disturb
    }

    private struct Server {
        var isUp = true
        /// Changes with every crash: replies and connections of an earlier life are lost.
        var life = 0
        /// The owners that it knows, by part.
        var owners: [Int]
        /// Parts that it is importing or exporting.
        var moving: [Int: Int] = [:]
    }

    private static let parts = 8
    private static let partSize = Int(HashSlot.count) / parts

    private var random: Seeded
    private var routing: RedisRouting
    private var servers: [Server]
    private var owners: [Int]
    private var events: [(time: Int, order: Int, event: Event)] = []
    private var order = 0
    private var now = 0
    private var lastTicket: UInt64 = 0
    private var requests: [UInt64: (deadline: Int, part: Int, traits: RedisCommandTraits)] = [:]
    private var executed: [UInt64: Int] = [:]
    private var isCalm = false
    private var tickAt: Int?
    private(set) var problems: [String] = []
    private(set) var succeeded = 0
    private(set) var failed = 0
    private(set) var failedInCalm = 0

    init(seed: UInt64) {
        random = Seeded(state: seed)
        let count = Int.random(in: 2...6, using: &random)
        owners = (0..<Self.parts).map { $0 % count }
        servers = Array(repeating: Server(owners: owners), count: count)
        routing = RedisRouting(ClusterTopology(seeds: [Self.address(0), Self.address(1)]))
    }

    private static func address(_ index: Int) -> RedisURL.Address { node(UInt16(1000 + index)) }

    private static func index(_ address: RedisURL.Address) -> Int? {
        if case .tcp(_, let port) = address, port >= 1000 { Int(port) - 1000 } else { nil }
    }

    mutating func run(commands: Int) {
        perform(routing.start(at: time(now)))
        for index in 0..<commands { add(.submit, after: 20 + index * 7) }
        for index in 0..<(commands / 12) { add(.disturb, after: 300 + index * 90) }
        let calm = 300 + commands * 7
        while let (at, event) = popEvent() {
            now = max(now, at)
            if now > calm + 2500, !isCalm { heal() }
            serve(event)
            if now > calm + 12_000 { break }
            if now > calm + 2500, isCalm, events.count < 4, requests.isEmpty, lastTicket < UInt64(commands + 40) {
                add(.submit, after: now > calm + 6000 ? 1 : 500)
            }
        }
        for ticket in requests.keys { problems.append("command \(ticket) has not ended") }
        if routing.count != 0 { problems.append("\(routing.count) entries are left") }
        if routing.nodeCount > 64 { problems.append("\(routing.nodeCount) nodes") }
    }

    private mutating func heal() {
        isCalm = true
        for index in servers.indices {
            servers[index].isUp = true
            servers[index].owners = owners
            servers[index].moving = [:]
        }
    }

    private mutating func add(_ event: Event, after delay: Int) {
        order += 1
        events.append((now + delay, order, event))
    }

    private mutating func popEvent() -> (Int, Event)? {
        guard
            let next = events.indices.min(by: {
                (events[$0].time, events[$0].order) < (events[$1].time, events[$1].order)
            })
        else { return nil }
        let event = events.remove(at: next)
        return (event.time, event.event)
    }

    private mutating func serve(_ event: Event) {
        switch event {
        case .submit: submit()
        case .disturb: if !isCalm { disturb() }
        case .tick:
            tickAt = nil
            perform(routing.tick(at: time(now)))
        case .reply(let ticket, let outcome, let node, let life):
            let isSame = Self.index(node).map { servers[$0].life == life && servers[$0].isUp } ?? false
            perform(routing.ended(ticket, isSame ? outcome : .failed(.connectionLost), at: time(now)))
        case .map(let node, let reply): perform(routing.answered(.slots, by: node, reply, at: time(now)))
        case .connected(let node, let life):
            guard let index = Self.index(node), index < servers.count, servers[index].isUp, servers[index].life == life
            else { return lose(node) }
            perform(routing.nodeReady(node, at: time(now)))
        case .failed(let node, _): lose(node)
        }
    }

    /// A connection is lost or not made; another attempt follows.
    private mutating func lose(_ node: RedisURL.Address) {
        perform(routing.nodeDown(node, .connectionLost, at: time(now)))
        connect(node, after: 40)
    }

    private mutating func connect(_ node: RedisURL.Address, after delay: Int = 1) {
        guard let index = Self.index(node), index < servers.count else {
            return add(.failed(node, epoch: 0), after: 200)
        }
        add(.connected(node, epoch: servers[index].life), after: delay + Int.random(in: 0...3, using: &random))
    }

    private mutating func submit() {
        lastTicket += 1
        let part = Int.random(in: 0..<Self.parts, using: &random)
        var traits: RedisCommandTraits = []
        if Bool.random(using: &random) { traits.insert(.isRepeatable) }
        if Bool.random(using: &random) { traits.insert(.hasManyKeys) }
        requests[lastTicket] = (now + 500, part, traits)
        let slot = HashSlot(UInt16(part * Self.partSize + Int.random(in: 0..<Self.partSize, using: &random)))
        perform(routing.submit(lastTicket, .init(slot: slot, deadline: time(now + 500), traits: traits), at: time(now)))
    }

    private mutating func disturb() {
        let index = Int.random(in: servers.indices, using: &random)
        switch Int.random(in: 0..<6, using: &random) {
        case 0:
            servers[index].isUp = false
            servers[index].life += 1
            add(.failed(Self.address(index), epoch: 0), after: 1)
            // The others take over what it had.
            let next = (index + 1) % servers.count
            for part in owners.indices where owners[part] == index { owners[part] = next }
        case 1:
            servers[index].isUp = true
        // It comes back with the map of before.
        case 2:
            for other in servers.indices { servers[other].owners = owners }
        case 3:
            let part = Int.random(in: 0..<Self.parts, using: &random)
            owners[part] = index
            servers[index].owners[part] = index
        case 4:
            let part = Int.random(in: 0..<Self.parts, using: &random)
            let source = owners[part]
            if source != index {
                servers[source].moving[part] = index
            }
        default:
            for part in owners.indices {
                let source = owners[part]
                if let target = servers[source].moving[part] {
                    owners[part] = target
                    servers[source].moving[part] = nil
                    servers[source].owners[part] = target
                    servers[target].owners[part] = target
                }
            }
        }
    }

    private mutating func perform(_ actions: [RedisRouting.Action]) {
        for action in actions {
            switch action {
            case .send(let ticket, let node, let isAsking): execute(ticket, node, isAsking)
            case .finish(let ticket, let error): finish(ticket, error)
            case .topology(.open(let node)): connect(node)
            case .topology(.ask(.slots, let node)):
                add(.map(node, map(of: node)), after: Int.random(in: 1...40, using: &random))
            case .topology: break
            }
        }
        guard let next = routing.nextTick else { return }
        let at = max(Int(next.nanoseconds / 1_000_000), now) + 1
        if tickAt.map({ $0 > at }) ?? true {
            tickAt = at
            add(.tick, after: at - now)
        }
    }

    private func map(of node: RedisURL.Address) -> RedisReply? {
        guard let index = Self.index(node), index < servers.count, servers[index].isUp else { return nil }
        return slots(
            servers[index].owners.enumerated().map { part, owner in
                let first = Int64(part * Self.partSize)
                return (first...(first + Int64(Self.partSize) - 1), UInt16(1000 + owner))
            })
    }

    private mutating func execute(_ ticket: UInt64, _ node: RedisURL.Address, _ isAsking: Bool) {
        guard let request = requests[ticket] else { return problems.append("an ended command is sent") }
        guard let index = Self.index(node), index < servers.count, servers[index].isUp else {
            return add(
                .reply(ticket, .failed(.connectionLost), node: Self.address(0), epoch: servers[0].life), after: 1)
        }
        let server = servers[index]
        let delay = Int.random(in: 1...5, using: &random)
        func redirect(_ isTemporary: Bool, _ target: Int) -> RedisRouting.Outcome {
            .redirected(
                RedisRedirect(
                    isTemporary: isTemporary, slot: UInt16(request.part * Self.partSize), host: "10.0.0.1",
                    port: UInt16(1000 + target)))
        }
        var outcome = RedisRouting.Outcome.reply
        if server.owners[request.part] != index, !isAsking {
            outcome = redirect(false, server.owners[request.part])
        } else if let target = server.moving[request.part] {
            switch Int.random(in: 0..<3, using: &random) {
            case 0: outcome = redirect(true, target)
            case 1 where request.traits.contains(.hasManyKeys):
                outcome = .failed(RedisErrorReply.storeError("TRYAGAIN"))
            default: break
            }
        }
        if case .reply = outcome {
            executed[ticket, default: 0] += 1
            if executed[ticket, default: 0] > 1, !request.traits.contains(.isRepeatable) {
                problems.append("command \(ticket) was executed twice")
            }
            if isAsking, request.traits.contains(.hasManyKeys) {
                problems.append("a script with many keys was sent to a node without some of them")
            }
        }
        add(.reply(ticket, outcome, node: node, epoch: server.life), after: delay)
    }

    private mutating func finish(_ ticket: UInt64, _ error: StoreError?) {
        guard let request = requests.removeValue(forKey: ticket) else {
            return problems.append("command \(ticket) ended twice")
        }
        if now > request.deadline + 10 { problems.append("command \(ticket) ended \(now - request.deadline) ms late") }
        if error == nil {
            succeeded += 1
            if executed[ticket] == nil { problems.append("command \(ticket) got a reply that no node gave") }
        } else {
            failed += 1
            if isCalm, now > 300 + 10_000 { failedInCalm += 1 }
        }
    }
}

@Suite struct RedisRoutingModelTests {
    /// Each batch is 25 clusters; more of them are worth a run after a change of the routing.
    private static let batches = ProcessInfo.processInfo.environment["MARTLET_MODEL_BATCHES"].flatMap { Int($0) } ?? 2

    @Test(arguments: 0..<batches)
    func `holds in clusters that fail, split and move slots`(batch: Int) {
        var succeeded = 0
        var failed = 0
        for number in 0..<25 {
            let seed = UInt64(batch * 1000 + number)
            var model = ClusterModel(seed: seed)
            model.run(commands: 100)
            #expect(model.problems.isEmpty, "seed \(seed): \(model.problems.prefix(5))")
            succeeded += model.succeeded
            failed += model.failed
        }
        // The model is one only if both happen.
        #expect(succeeded > 1000 && failed > 0, "\(succeeded) \(failed)")
    }
}
