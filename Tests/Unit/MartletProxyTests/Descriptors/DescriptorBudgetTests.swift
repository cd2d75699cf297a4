import MartletConfig
import MartletProvider
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// A network, by a number.
private func network(_ number: UInt8) -> ClientNetwork? {
    ClientNetwork(address: [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF, 192, 0, 2, number])
}

@Suite struct DescriptorPlanTests {
    /// limit, reserve, clients, operators, for upstreams besides 10,000 connections, and besides 100.
    private static let plans = [
        (64, 32, 16, 16, 16, 16), (512, 256, 128, 128, 128, 156), (1024, 256, 384, 128, 384, 668),
        (4096, 512, 1792, 256, 1792, 3484), (65_536, 4096, 30_720, 2048, 51_440, 61_340),
        (1_048_576, 4096, 522_240, 2048, 1_034_480, 1_044_380),
    ]

    @Test(arguments: plans)
    func `divides what the system allows`(
        limit: Int, reserve: Int, clients: Int, operators: Int, upstreams: Int, more: Int
    ) {
        let plan = DescriptorPlan(limit: limit)
        #expect(plan.reserve == reserve && plan.clients == clients && plan.operators == operators)
        #expect(plan.upstreams(besides: 10_000) == upstreams && plan.upstreams(besides: 100) == more)
    }

    @Test func `never gives more away than there is, and always something`() {
        for limit in [0, 1, 2, 3, 16, 100, 255, 257, 1000, 5000, 1 << 40] {
            let plan = DescriptorPlan(limit: limit)
            for connections in [0, 1, 50, 10_000, .max] {
                let (clients, upstreams) = (min(connections, plan.clients), plan.upstreams(besides: connections))
                #expect(plan.clients > 0 && plan.operators > 0 && upstreams > 0)
                if limit >= 16 { #expect(clients + upstreams + plan.reserve <= limit, "\(limit), \(connections)") }
                if limit >= 16 { #expect(plan.operators < plan.reserve) }
            }
        }
    }
}

@Suite struct DescriptorBudgetTests {
    /// With 384 for upstreams.
    private static func budget() -> DescriptorBudget {
        let budget = DescriptorBudget(DescriptorPlan(limit: 1024))
        budget.adopt(connections: 10_000)
        return budget
    }

    /// Opens connections for a network until one is refused.
    private static func fill(_ loop: inout LoopDescriptors, _ network: ClientNetwork?) -> [DescriptorCharge] {
        var charges: [DescriptorCharge] = []
        while let charge = loop.take(for: network) { charges.append(charge) }
        return charges
    }

    @Test func `a network leaves a quarter to others, and others leave something to more`() {
        var loop = LoopDescriptors(Self.budget())
        let first = Self.fill(&loop, network(1))
        #expect(first.count == 288 && !loop.isFull)
        let second = Self.fill(&loop, network(2))
        #expect(second.count == 72 && !loop.isFull)
        #expect(Self.fill(&loop, network(3)).count == 18)
        // The flood gets none of what it did not use, and one that leaves makes room for another network.
        #expect(loop.take(for: network(1)) == nil)
    }

    @Test func `what is closed can be had again`() {
        let budget = Self.budget()
        var loop = LoopDescriptors(budget)
        for _ in 0..<3 {
            var charges = Self.fill(&loop, network(1))
            #expect(charges.count == 288 && budget.count == 288)
            for index in charges.indices { loop.release(&charges[index]) }
            #expect(budget.count == 0)
            // Twice is once.
            for index in charges.indices { loop.release(&charges[index]) }
            #expect(budget.count == 0)
        }
    }

    @Test func `clients without a network share all`() {
        var loop = LoopDescriptors(Self.budget())
        #expect(Self.fill(&loop, nil).count == 384 && loop.isFull)
    }

    @Test func `a configuration with fewer connections leaves more`() {
        let budget = Self.budget()
        budget.adopt(connections: 100)
        var loop = LoopDescriptors(budget)
        #expect(Self.fill(&loop, nil).count == 668)
        // More than there are now: nothing is closed, and none can be opened.
        budget.adopt(connections: 10_000)
        #expect(loop.isFull && loop.take(for: network(1)) == nil)
    }

    @Test func `an idle connection counts for no network, and where they are scarce for whoever uses it next`() {
        var loop = LoopDescriptors(Self.budget())
        var charges = Self.fill(&loop, network(1))
        #expect(loop.isScarce)
        for index in 0..<100 { loop.endUse(&charges[index]) }
        #expect(loop.use(&charges[0], by: network(2)))
        var refused = 0
        for index in 1..<100 where !loop.use(&charges[index], by: network(1)) { refused += 1 }
        #expect(refused == 0)
        // 384 - 288 are free, of which a network may have three times as many.
        var (count, charge) = (287, DescriptorCharge())
        while loop.use(&charge, by: network(1)) { count += 1 }
        #expect(count == 291)
    }

    @Test func `a loop without a budget takes what it needs`() {
        var loop = LoopDescriptors(nil)
        for _ in 0..<1000 { #expect(loop.take(for: network(1)) != nil) }
        #expect(!loop.isFull && !loop.isScarce)
    }

    @Test func `pipes take two, and give them back`() {
        let budget = DescriptorBudget(DescriptorPlan(limit: 16))
        budget.adopt(connections: 100)
        var pipes = SplicePipes(budget)
        let (first, second) = (pipes.acquire(), pipes.acquire())
        let third = pipes.acquire()
        #expect(first != nil && second != nil && third == nil && budget.count == 4)
        for handle in [first, second] { if let handle { pipes.release(handle) } }
        // Spares are open.
        #expect(budget.count == 4)
        _ = consume pipes
        #expect(budget.count == 0)
    }
}

@Suite struct ConnectionShareTests {
    private static func limits(_ connections: Int) -> Limits {
        var limits = Limits()
        limits.connections = connections
        return limits
    }

    private static func address(_ number: UInt8) -> [UInt8] {
        [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF, 192, 0, 2, number]
    }

    /// Opens connections of an address until one is refused.
    private static func fill(
        _ limit: ConnectionLimit, _ number: UInt8, isDivided: Bool = true, of connections: Int
    ) -> (count: Int, last: ConnectionLimit.Admission) {
        var count = 0
        while true {
            let admission = limit.enter(address(number), isDivided: isDivided, limits: limits(connections))
            guard admission.isAdmitted else { return (count, admission) }
            count += 1
        }
    }

    @Test func `a network leaves an eighth to others`() {
        let limit = ConnectionLimit()
        let flood = Self.fill(limit, 1, of: 800)
        #expect(flood == (700, .refusedToNetwork))
        #expect(Self.fill(limit, 2, of: 800) == (88, .refusedToNetwork))
        for _ in 0..<700 { limit.leave(Self.address(1), .countedByNetwork) }
        #expect(limit.count == 88 && limit.enter(Self.address(1), limits: Self.limits(800)).isAdmitted)
    }

    @Test func `a trusted proxy, and few connections, are not divided`() {
        #expect(Self.fill(ConnectionLimit(), 1, isDivided: false, of: 800) == (800, .refused))
        #expect(Self.fill(ConnectionLimit(), 1, of: 63) == (63, .refused))
    }

    @Test func `no more are admitted than the system has descriptors for`() {
        let limit = ConnectionLimit(maximum: 80)
        #expect(Self.fill(limit, 1, of: 10_000) == (70, .refusedToNetwork))
        #expect(Self.fill(limit, 2, isDivided: false, of: 10_000) == (10, .refused))
    }
}
