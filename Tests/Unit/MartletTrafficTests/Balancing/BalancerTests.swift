import MartletTraffic
import Testing

@Suite struct `A balancer` {
    private static func candidates(_ weights: Int...) -> [EndpointCandidate] {
        weights.enumerated().map { index, weight in
            var candidate = EndpointCandidate()
            candidate.weight = Int64(weight) * SlowStart.scale
            if weight == 0 { candidate.condition = .drained }
            candidate.hash = RendezvousHash.hash("http://10.0.0.\(index)".utf8)
            return candidate
        }
    }

    private func counts(
        _ policy: BalancePolicy, _ candidates: [EndpointCandidate], requests: Int = 10_000, panicThreshold: Int = 50
    ) -> [Int] {
        var balancer = Balancer()
        var counts = [Int](repeating: 0, count: candidates.count)
        for number in 0..<requests {
            let hash = RendezvousHash.hash("key \(number)".utf8)
            let chosen = balancer.choose(
                policy, hash: hash, avoiding: nil, panicThreshold: panicThreshold, among: candidates.span)
            if let chosen { counts[chosen.position] += 1 }
        }
        return counts
    }

    @Test(arguments: [BalancePolicy.leastRequests, .roundRobin])
    func `divides idle endpoints' requests exactly by weight`(policy: BalancePolicy) {
        #expect(counts(policy, Self.candidates(3, 1)) == [7500, 2500])
        #expect(counts(policy, Self.candidates(1, 1, 1, 1)) == [2500, 2500, 2500, 2500])
        #expect(counts(policy, Self.candidates(5, 3, 2, 0)) == [5000, 3000, 2000, 0])
        #expect(counts(policy, Self.candidates(1000, 1), requests: 1001) == [1000, 1])
    }

    @Test func `spreads the requests of a weight over time, not in a row`() {
        var balancer = Balancer()
        let candidates = Self.candidates(3, 1)
        let order = (0..<8).map { _ in
            balancer.choose(.roundRobin, hash: nil, avoiding: nil, panicThreshold: 50, among: candidates.span)?.position
        }
        #expect(order == [0, 0, 1, 0, 0, 0, 1, 0])
    }

    @Test func `divides keys by weight within two percent`() {
        let counts = counts(.hash, Self.candidates(3, 1))
        #expect((7350...7650).contains(counts[0]))
        let even = self.counts(.hash, Self.candidates(1, 1, 1, 1, 1, 1, 1, 1, 1, 1))
        #expect(even.allSatisfy { (900...1100).contains($0) })
    }

    @Test func `moves only the keys of an endpoint that goes`() {
        var candidates = Self.candidates(1, 1, 1, 1, 1, 1, 1, 1, 1, 1)
        var balancer = Balancer()
        func homes() -> [Int?] {
            (0..<10_000).map { number in
                balancer.choose(
                    .hash, hash: RendezvousHash.hash("key \(number)".utf8), avoiding: nil, panicThreshold: 50,
                    among: candidates.span)?.position
            }
        }
        let before = homes()
        candidates[4].condition = .unhealthy
        let after = homes()
        let moved = zip(before, after).filter { $0 != $1 }.count
        #expect(moved <= 1200 && moved == before.filter { $0 == 4 }.count)
        candidates[4].condition = .healthy
        #expect(homes() == before)
    }

    @Test func `moves few keys when a weight grows, all of them to it`() {
        var candidates = Self.candidates(1, 1, 1, 1)
        var balancer = Balancer()
        func homes() -> [Int?] {
            (0..<10_000).map { number in
                balancer.choose(
                    .hash, hash: RendezvousHash.hash("key \(number)".utf8), avoiding: nil, panicThreshold: 50,
                    among: candidates.span)?.position
            }
        }
        let before = homes()
        candidates[2].weight *= 2
        let changes = zip(before, homes()).filter { $0 != $1 }
        #expect(changes.allSatisfy { $0.1 == 2 })
        #expect((1300...1700).contains(changes.count))
    }

    @Test func `takes the endpoint with the fewest requests, whatever its position`() {
        var candidates = Self.candidates(1, 1, 1)
        candidates[0].active = 3
        candidates[1].active = 1
        candidates[2].active = 2
        #expect(counts(.leastRequests, candidates, requests: 10) == [0, 10, 0])
        #expect(counts(.roundRobin, candidates, requests: 9) == [3, 3, 3])
    }

    @Test func `counts requests under way against a weight`() {
        var candidates = Self.candidates(3, 1)
        candidates[0].active = 5
        // 3 / 6 to 1 / 1.
        #expect(counts(.leastRequests, candidates, requests: 3000) == [1000, 2000])
        #expect(counts(.roundRobin, candidates, requests: 4000) == [3000, 1000])
    }

    @Test func `balances a request without a key by its load`() {
        var balancer = Balancer()
        var candidates = Self.candidates(1, 1)
        candidates[0].active = 1
        let chosen = balancer.choose(.hash, hash: nil, avoiding: nil, panicThreshold: 50, among: candidates.span)
        #expect(chosen?.position == 1)
    }

    @Test func `avoids the endpoint that failed, unless it is the only one`() {
        var balancer = Balancer()
        for policy in [BalancePolicy.leastRequests, .roundRobin, .hash] {
            for _ in 0..<10 {
                let chosen = balancer.choose(
                    policy, hash: 7, avoiding: 0, panicThreshold: 50, among: Self.candidates(1, 1).span)
                #expect(chosen?.position == 1)
            }
            let only = balancer.choose(policy, hash: 7, avoiding: 0, panicThreshold: 50, among: Self.candidates(1).span)
            #expect(only?.position == 0)
        }
    }

    /// The states of endpoints, a letter each: `h`ealthy, `u`nhealthy, `e`jected, `d`rained; in capitals of backups.
    struct Selection: CustomTestStringConvertible, Sendable {
        let states: String
        var threshold = 50
        /// The positions that get requests.
        let used: Set<Int>
        var panics = false
        var testDescription: String { "\(states) \(threshold)%" }

        var candidates: [EndpointCandidate] {
            states.enumerated().map { index, letter in
                var candidate = EndpointCandidate()
                candidate.hash = RendezvousHash.hash("\(index)".utf8)
                candidate.isBackup = letter.isUppercase
                switch letter.lowercased() {
                case "u": candidate.condition = .unhealthy
                case "d": candidate.condition = .drained
                case "e": candidate.isEjected = true
                default: break
                }
                return candidate
            }
        }
    }

    @Test(arguments: [
        Selection(states: "hhh", used: [0, 1, 2]),
        Selection(states: "huh", used: [0, 2]),
        Selection(states: "heu", used: [0, 1, 2], panics: true),
        Selection(states: "heu", threshold: 0, used: [0]),
        Selection(states: "heu", threshold: 33, used: [0]),
        Selection(states: "hu", used: [0]),
        Selection(states: "uu", used: [0, 1], panics: true),
        Selection(states: "uu", threshold: 0, used: []),
        Selection(states: "u", threshold: 0, used: [0], panics: true),
        Selection(states: "e", used: [0], panics: true),
        Selection(states: "dd", used: []),
        Selection(states: "d", used: []),
        Selection(states: "du", used: [1], panics: true),
        Selection(states: "ddh", used: [2]),
        Selection(states: "hH", used: [0]),
        Selection(states: "uH", used: [1]),
        Selection(states: "huuH", used: [0, 3]),
        Selection(states: "uU", used: [0, 1], panics: true),
        Selection(states: "dH", used: [1]),
        Selection(states: "HH", used: [0, 1]),
        Selection(states: "uuD", threshold: 0, used: []),
    ])
    func `uses the endpoints of its pool`(row: Selection) {
        for policy in [BalancePolicy.leastRequests, .roundRobin, .hash] {
            var balancer = Balancer()
            var used: Set<Int> = []
            for number in 0..<100 {
                let hash = RendezvousHash.hash("\(number)".utf8)
                let chosen = balancer.choose(
                    policy, hash: hash, avoiding: nil, panicThreshold: row.threshold, among: row.candidates.span)
                guard let chosen else { continue }
                used.insert(chosen.position)
                #expect(chosen.isPanicking == row.panics)
            }
            #expect(used == row.used)
        }
    }
}

@Suite struct `A slow start` {
    private static let second: Int64 = 1_000_000_000

    @Test(arguments: [(0, 1000), (1, 1000), (15, 5000), (30, 10_000), (31, 10_000), (-5, 1000)])
    func `raises a weight evenly from a tenth`(seconds: Int64, expected: Int64) {
        let weight = SlowStart.weight(10, since: 100, span: 30 * Self.second, at: 100 + seconds * Self.second)
        #expect(weight == expected)
    }

    @Test func `is off without a start or a span, and leaves no weight as it is`() {
        #expect(SlowStart.weight(3, since: nil, span: Self.second, at: 0) == 3000)
        #expect(SlowStart.weight(3, since: 0, span: 0, at: 0) == 3000)
        #expect(SlowStart.weight(0, since: 0, span: Self.second, at: 0) == 0)
        #expect(SlowStart.weight(1000, since: 0, span: 3600 * Self.second, at: 1800 * Self.second) == 500_000)
    }
}

@Suite struct `A rendezvous hash` {
    @Test func `is the same everywhere`() {
        #expect(RendezvousHash.hash("".utf8) == 0xEFD0_1F60_BA99_2926)
        #expect(RendezvousHash.hash("http://10.0.0.1".utf8) == RendezvousHash.hash(Array("http://10.0.0.1".utf8)))
        #expect(RendezvousHash.hash("a".utf8) != RendezvousHash.hash("b".utf8))
    }

    @Test func `orders equal weights like plain scores`() {
        for number in 0..<1000 {
            let key = RendezvousHash.hash("\(number)".utf8)
            let plain = RendezvousHash.score(key, 1) > RendezvousHash.score(key, 2)
            let weighted =
                RendezvousHash.weightedScore(key, 1, weight: 5) < RendezvousHash.weightedScore(key, 2, weight: 5)
            #expect(plain == weighted)
        }
        #expect(RendezvousHash.weightedScore(1, 2, weight: 0) == .infinity)
    }
}
