import MartletConfig
import MartletCore
import MartletDecisionsTesting
import MartletIO
import MartletProvider
import MartletResponder
import MartletTraffic
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct `Endpoints with policies` {
    private typealias Bench = UpstreamDirectoryBench
    private static let second = Bench.second

    private func bench(_ count: Int, _ change: (inout UpstreamConfiguration) -> Void) -> Bench {
        var configuration = SampleUpstream.configuration("api", (1...count).map { SampleUpstream.address($0) })
        change(&configuration)
        return Bench(Upstream(configuration))
    }

    private func identity(_ number: Int, _ upstream: String = "api") -> EndpointIdentity {
        EndpointIdentity(upstream: upstream, address: SampleUpstream.address(number))
    }

    private func report(_ bench: Bench, now: Int64 = 0) -> [String] {
        bench.directory.report(now: now).map { "\($0.state.rawValue): \($0.reason)" }
    }

    private func panics(_ bench: Bench) -> [Bool] { bench.directory.report(now: 0).map(\.isPanicking) }

    private func ages(_ bench: Bench, now: Int64) -> [Int64?] { bench.directory.report(now: now).map(\.age) }

    // MARK: Weights

    @Test func `get requests by weight, and a backup only while no other is usable`() {
        let bench = bench(3) {
            $0.members[0].weight = 3
            $0.members[2].isBackup = true
        }
        let counts = bench.choices(400).reduce(into: [0, 0, 0]) { $0[$1] += 1 }
        #expect(counts == [300, 100, 0])
        bench.fail(0, refused: true)
        #expect(Set(bench.choices(10)) == [1])
        bench.fail(1, refused: true)
        #expect(Set(bench.choices(10)) == [2])
    }

    @Test func `of weight 0 get none, even as the only one that is usable`() {
        let bench = bench(2) { $0.members[1].weight = 0 }
        #expect(Set(bench.choices(10)) == [0])
        bench.fail(0, refused: true)
        #expect(Set(bench.choices(10)) == [0])
    }

    // MARK: Health checks and the operator

    @Test func `that are unhealthy get no requests until they are healthy`() {
        let bench = bench(2) { $0.policies.healthCheck = HealthCheckConfiguration() }
        bench.directory.note([EndpointHealth(identity(1), isHealthy: false, reason: "status 503")], now: 5)
        #expect(Set(bench.choices(10)) == [1])
        #expect(report(bench, now: 9) == ["unhealthy: status 503", "healthy: "])
        #expect(ages(bench, now: 9) == [4, nil])
        bench.directory.note([EndpointHealth(identity(1), isHealthy: true, reason: "status 200")], now: 6)
        #expect(Set(bench.choices(10)) == [0, 1])
        #expect(report(bench) == ["healthy: status 200", "healthy: "])
    }

    @Test func `are all used when too few are healthy, and the report says so`() {
        let bench = bench(3) { $0.policies.healthCheck = HealthCheckConfiguration() }
        let sick = [1, 2].map { EndpointHealth(identity($0), isHealthy: false, reason: "") }
        bench.directory.note(sick, now: 0)
        // Before the first request, too.
        #expect(panics(bench) == [true, true, true])
        #expect(Set(bench.choices(30)) == [0, 1, 2])
        #expect(panics(bench) == [true, true, true])
        bench.directory.note([EndpointHealth(identity(1), isHealthy: true, reason: "")], now: 0)
        #expect(Set(bench.choices(30)) == [0, 2])
        #expect(panics(bench) == [false, false, false])
    }

    @Test func `are none where all are unhealthy and the threshold is off`() {
        let bench = bench(2) {
            $0.policies.healthCheck = HealthCheckConfiguration()
            $0.policies.panicThreshold = Percentage(0)
        }
        let sick = [1, 2].map { EndpointHealth(identity($0), isHealthy: false, reason: "") }
        bench.directory.note(sick, now: 0)
        #expect(bench.choose() == nil)
    }

    @Test func `that an operator drains get no requests, even the only one`() {
        let two = bench(2) { _ in }
        two.directory.setDrained([identity(2)], now: 0)
        #expect(Set(two.choices(10)) == [0])
        two.directory.setDrained([identity(1), identity(2)], now: 0)
        #expect(two.choose() == nil && report(two) == Array(repeating: "draining: taken out by an operator", count: 2))
        two.directory.setDrained([identity(2)], now: 0)
        #expect(Set(two.choices(10)) == [0])
        let one = bench(1) { _ in }
        one.directory.setDrained([identity(1)], now: 0)
        #expect(one.choose() == nil)
        one.directory.setDrained([], now: 0)
        #expect(one.choose() == 0)
    }

    @Test func `of other upstreams and addresses are not meant`() {
        let bench = bench(2) { _ in }
        bench.directory.setDrained([identity(1, "other"), identity(9)], now: 0)
        #expect(Set(bench.choices(10)) == [0, 1])
    }

    @Test func `keep what is known of them over a reload`() {
        let configuration = SampleUpstream.configuration("api", SampleUpstream.addresses(1, 2))
        let bench = Bench(Upstream(configuration))
        bench.directory.setDrained([identity(1)], now: 0)
        bench.adopt([Upstream(configuration)])
        #expect(Set(bench.choices(10)) == [1])
    }

    @Test func `of a drained name are out of use, whatever addresses it gets`() {
        let name = EndpointAddress.http(host: "db.internal", port: 80)
        let bench = Bench(Upstream(SampleUpstream.configuration("a", [name, SampleUpstream.address(9)])))
        bench.directory.setDrained([EndpointIdentity(upstream: "a", address: name)], now: 0)
        bench.resolve(Bench.resolved(name, "10.1.0.1", "10.1.0.2"))
        #expect(Set(bench.choices(10)) == [bench.members(0)[2]])
        bench.directory.setDrained([], now: 0)
        #expect(Set(bench.choices(10)) == Set(bench.members(0)))
    }

    // MARK: Outliers

    private func outlier(_ change: (inout OutlierConfiguration) -> Void) -> (inout UpstreamConfiguration) -> Void {
        var outlier = OutlierConfiguration()
        change(&outlier)
        return { [outlier] in $0.policies.outlier = outlier }
    }

    @Test func `are ejected by the policy's count and for its time`() {
        let bench = bench(
            2,
            outlier {
                $0.consecutiveFailures = 2
                $0.baseEjection = .seconds(3)
            })
        bench.fail(0, at: 1)
        #expect(bench.endpoint(0).ejection.count == 0)
        bench.fail(0, at: 1)
        #expect(bench.endpoint(0).ejection.until == 3 * Self.second + 1)
        #expect(report(bench, now: 1)[0] == "ejected: 2 failures in a row, for another 3000 ms")
    }

    @Test func `are ejected by their error rate`() {
        let bench = bench(
            2,
            outlier {
                $0.minimumRequests = 10
                $0.errorRate = Percentage(50)
                $0.consecutiveFailures = 1000
            })
        for number in 0..<9 { number % 2 == 0 ? bench.fail(0) : bench.succeed(0) }
        #expect(bench.endpoint(0).ejection.count == 0)
        bench.fail(0)
        #expect(bench.endpoint(0).ejection.count == 1)
    }

    @Test func `are not ejected while too many others are out of use`() {
        let bench = bench(4, outlier { $0.maximumEjected = Percentage(50) })
        bench.fail(0, refused: true)
        bench.directory.note([EndpointHealth(identity(2), isHealthy: false, reason: "")], now: 0)
        bench.fail(2, refused: true)
        #expect(bench.endpoint(2).ejection.count == 0)
        bench.directory.note([EndpointHealth(identity(2), isHealthy: true, reason: "")], now: 0)
        bench.fail(2, refused: true)
        #expect(bench.endpoint(2).ejection.count == 1)
    }

    // MARK: Slow start

    @Test func `get a growing share after they have become healthy`() {
        let bench = bench(2) {
            $0.policies.healthCheck = HealthCheckConfiguration()
            $0.policies.slowStart = .seconds(10)
        }
        #expect(bench.choices(1000).count { $0 == 0 } == 500)
        bench.directory.note([EndpointHealth(identity(1), isHealthy: false, reason: "")], now: 0)
        bench.directory.note([EndpointHealth(identity(1), isHealthy: true, reason: "")], now: 0)
        let shares = [0, 5, 10].map { second in
            bench.choices(1100, now: Int64(second) * Self.second).count { $0 == 0 }
        }
        #expect((95...105).contains(shares[0]) && (360...375).contains(shares[1]) && (545...555).contains(shares[2]))
        #expect(report(bench, now: Self.second)[0] == "slow_start: its share grows")
    }

    @Test func `that a reload adds start slowly, those of a new upstream do not`() {
        var configuration = SampleUpstream.configuration("api", SampleUpstream.addresses(1))
        configuration.policies.slowStart = .seconds(10)
        let bench = Bench(Upstream(configuration))
        #expect(report(bench) == ["healthy: "])
        configuration.members.append(SampleUpstream.configuration("", SampleUpstream.addresses(2)).members[0])
        bench.adopt([Upstream(configuration)], now: 5)
        #expect(report(bench, now: 6) == ["healthy: ", "slow_start: its share grows"])
    }

    @Test func `that respond after an ejection start slowly`() {
        let bench = bench(2) { $0.policies.slowStart = .seconds(10) }
        bench.fail(0, refused: true, at: 0)
        bench.succeed(0, at: 2 * Self.second)
        #expect(report(bench, now: 3 * Self.second)[0] == "slow_start: its share grows")
    }

    // MARK: Many

    @Test func `balance by the subject's hash alike in every process`() {
        let upstreams = (0..<2).map { _ in bench(10) { $0.balance = .hashSubject } }
        for number in 1...1000 {
            let hash = RendezvousHash.hash("usr_\(number)".utf8)
            #expect(upstreams[0].choose(hash: hash) == upstreams[1].choose(hash: hash))
        }
    }
}

@Suite struct `Requests that wait` {
    private func entry(
        _ index: Int32, _ reason: DelayedRequests.Reason = .backoff, deadline: Int64, cluster: Int32 = 0
    ) -> DelayedRequests.Entry {
        DelayedRequests.Entry(
            exchange: Handle(index: index, generation: 1), cluster: ClusterIndex(rawValue: cluster), avoiding: .none,
            reason: reason, deadline: deadline)
    }

    @Test func `are taken once, when their time is over, in order`() {
        var waiting = DelayedRequests()
        for (index, deadline) in [30, 10, 20, 10].enumerated() {
            waiting.add(entry(Int32(index), deadline: Int64(deadline)))
        }
        let first = waiting.takeDue(at: 9).count
        let second = waiting.takeDue(at: 10).map { $0.exchange.index }
        let third = waiting.takeDue(at: 100).map { $0.exchange.index }
        let isEmpty = waiting.isEmpty
        #expect(first == 0 && second == [1, 3] && third == [0, 2] && isEmpty)
    }

    @Test func `for connections are taken whenever one may be free`() {
        var waiting = DelayedRequests()
        waiting.add(entry(1, deadline: 10))
        waiting.add(entry(2, .connection, deadline: 20, cluster: 3))
        waiting.add(entry(3, .connection, deadline: 20))
        let clusters = waiting.pendingClusters.map(\.rawValue)
        let taken = waiting.takePending(of: ClusterIndex(rawValue: 3)).map { $0.exchange.index }
        let left = waiting.takeDue(at: 100).map { $0.exchange.index }
        #expect(clusters == [3, 0] && taken == [2] && left == [1, 3])
    }

    @Test func `for connections take turns by network`() {
        let networks = (1...3).map {
            ClientNetwork(address: [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF, 10, 0, 0, $0])
        }
        var waiting = DelayedRequests()
        // Four of one network came before those of two others.
        for (index, network) in [0, 0, 0, 0, 1, 2, 1].enumerated() {
            var entry = entry(Int32(index), .connection, deadline: 20)
            entry.network = networks[network]
            waiting.add(entry)
        }
        let taken = waiting.takePending(of: ClusterIndex(rawValue: 0)).map { $0.exchange.index }
        let isEmpty = waiting.isEmpty
        #expect(taken == [0, 4, 5, 1, 6, 2, 3] && isEmpty)
    }

    @Test func `leave an eighth of many to other networks, and nothing of few`() {
        let networks = (1...2).map {
            ClientNetwork(address: [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF, 10, 0, 0, $0])
        }
        for (maximum, most) in [(128, 112), (64, 56), (63, 63), (2, 2)] {
            let counter = DividedCounter(.upstreamRequests)
            func enter(_ entry: inout DividedEntry, _ network: Int) -> Bool {
                // The address is looked at where it may matter alone.
                let isDivided = counter.isDivided(of: maximum)
                return entry.enter(counter, maximum: maximum, for: isDivided ? networks[network] : nil)
            }
            var count = 0
            for _ in 0..<maximum {
                var entry = DividedEntry()
                guard enter(&entry, 0) else { break }
                count += 1
            }
            #expect(count == most, "\(maximum)")
            for _ in 0..<3 {
                var other = DividedEntry()
                let isLeft = enter(&other, 1)
                #expect(isLeft == (most < maximum) && other.isEntered == isLeft, "\(maximum)")
                other.leave()
                #expect(!other.isEntered)
            }
        }
    }

    @Test func `that connections carry are counted until they have none`() {
        let breaker = Breaker(BreakerConfiguration(), UpstreamCounters())
        var first = Forwarding()
        var second = Forwarding()
        let entered = [
            first.enter(breaker, for: nil), first.carry(breaker, maximum: 1, for: nil),
            second.enter(breaker, for: nil), second.carry(breaker, maximum: 1, for: nil),
        ]
        #expect(entered == [true, true, true, false])
        first.stopCarrying()
        let isCarried = second.carry(breaker, maximum: 1, for: nil)
        #expect(isCarried)
        second.end()
        let isFree = first.carry(breaker, maximum: 1, for: nil)
        #expect(isFree)
    }

    @Test func `for full connections are looked at again when those carry more or fewer`() {
        let cluster = ClusterIndex(rawValue: 0)
        var waiting = DelayedRequests()
        let before = waiting.mayCarryMore(cluster, carried: 56, at: 0)
        waiting.tried(cluster, carried: 56, at: 0)
        let after = [(56, 1), (55, 1), (57, 1), (56, 5_000_000)].map {
            waiting.mayCarryMore(cluster, carried: $0.0, at: Int64($0.1))
        }
        waiting.tried(cluster, carried: nil, at: 6_000_000)
        let sent = waiting.mayCarryMore(cluster, carried: 56, at: 6_000_001)
        #expect(before && after == [false, true, true, true] && sent)
    }

    @Test func `shorten the loop's sleep`() {
        var waiting = DelayedRequests()
        let none = waiting.wait(at: 0, idle: 1000)
        waiting.add(entry(1, deadline: 25_000_000))
        let backoff = [waiting.wait(at: 0, idle: 1000), waiting.wait(at: 0, idle: 10)]
        let past = waiting.wait(at: 99_000_000, idle: 1000)
        waiting.add(entry(2, .connection, deadline: 900_000_000))
        let connection = waiting.wait(at: 0, idle: 1000)
        #expect(none == 1000 && backoff == [26, 10] && past == 1 && connection == 5)
    }
}
