import MartletConfig
import Testing

@testable import MartletProxy

@Suite struct `An endpoint for a request` {
    private typealias Bench = UpstreamDirectoryBench
    private static let byHash = UpstreamConfiguration.Balance.hash(header: "x-user")

    @Test func `is none where the upstream has none`() {
        let bench = Bench(endpoints: 0)
        #expect(bench.choose() == nil)
        #expect(bench.choose(hash: 7, avoiding: 0) == nil)
    }

    @Test(arguments: [UpstreamConfiguration.Balance.leastRequests, .roundRobin, .hash(header: "x-user")])
    func `is the only one, even if it is ejected and failed the request`(_ balance: UpstreamConfiguration.Balance) {
        let bench = Bench(endpoints: 1, balance: balance)
        bench.fail(0, refused: true)
        #expect(bench.choices(2, hash: 9, avoiding: 0) == [0, 0])
    }

    @Test(arguments: [UpstreamConfiguration.Balance.leastRequests, .roundRobin, .hash(header: "x-user")])
    func `is one that failed the request where all are the same`(_ balance: UpstreamConfiguration.Balance) {
        let bench = Bench(Bench.upstream("api", Bench.addresses(1, 1), balance: balance))
        #expect(bench.choices(2, avoiding: 0) == [0, 0])
    }

    @Test func `belongs to the upstream`() {
        let bench = Bench(Bench.upstream("a", Bench.addresses(1, 2)), Bench.upstream("b", Bench.addresses(3, 4)))
        let chosen = (0..<4).map { _ in bench.choose(1) ?? -1 }
        #expect(chosen == [3, 2, 3, 2])
    }

    // MARK: Round robin

    @Test func `is the next one in round robin`() {
        let bench = Bench(endpoints: 3)
        #expect(bench.choices(7) == [1, 2, 0, 1, 2, 0, 1])
    }

    @Test func `is the next one in round robin, whatever the load`() {
        let bench = Bench(endpoints: 2)
        bench.begin(1)
        bench.begin(1)
        #expect(bench.choices(3, hash: 5) == [1, 0, 1])
    }

    @Test func `has a turn of its own in each upstream`() {
        let bench = Bench(Bench.upstream("a", Bench.addresses(1, 2)), Bench.upstream("b", Bench.addresses(1, 2)))
        let chosen = [0, 1, 0, 0, 1].map { bench.choose($0) ?? -1 }
        #expect(chosen == [1, 1, 0, 1, 0])
    }

    @Test func `is the next one after the one that failed the request`() {
        let bench = Bench(endpoints: 3)
        #expect(bench.choose(avoiding: 1) == 2)
        #expect(bench.choose(avoiding: 1) == 2)
        #expect(bench.choose(avoiding: 1) == 0)
    }

    @Test func `is the next one after an ejected one in round robin`() {
        let bench = Bench(endpoints: 3)
        bench.fail(1, refused: true)
        #expect(bench.choices(4) == [2, 2, 0, 2])
    }

    @Test func `is the next one of fewer after a reload`() {
        let bench = Bench(endpoints: 3)
        #expect(bench.choices(2) == [1, 2])
        bench.adopt([Bench.upstream("api", Bench.addresses(0, 1))])
        #expect(bench.choices(3) == [1, 0, 1])
    }

    // MARK: Hash

    static let hashes: [(UInt64, Int)] = [(0, 0), (1, 1), (2, 2), (3, 0), (100, 1), (.max, 0), (.max - 1, 2)]

    @Test(arguments: hashes)
    func `is the same for the same hash`(hash: UInt64, expected: Int) {
        let bench = Bench(endpoints: 3, balance: Self.byHash)
        #expect(bench.choices(4, hash: hash) == [expected, expected, expected, expected])
    }

    @Test func `is the following one where the one of the hash failed the request or is ejected`() {
        let bench = Bench(endpoints: 3, balance: Self.byHash)
        #expect(bench.choices(2, hash: 2, avoiding: 2) == [0, 0])
        bench.fail(0, refused: true)
        #expect(bench.choices(2, hash: 2, avoiding: 2) == [1, 1])
        #expect(bench.choices(2, hash: 0) == [1, 1])
        #expect(bench.choices(2, hash: 2) == [2, 2])
    }

    // MARK: Least requests

    @Test func `is the one with the fewest requests`() {
        let bench = Bench(endpoints: 3, balance: .leastRequests)
        for endpoint in [0, 0, 0, 1, 2, 2] { bench.begin(endpoint) }
        #expect(bench.choices(4) == [1, 1, 1, 1])
        bench.begin(1)
        bench.begin(1)
        #expect(bench.choices(3) == [2, 2, 2])
        for _ in 0..<2 { bench.end(0) }
        #expect(bench.choices(3) == [0, 0, 0])
    }

    @Test func `is the next one among equally loaded ones`() {
        let bench = Bench(endpoints: 3, balance: .leastRequests)
        #expect(bench.choices(4) == [1, 2, 0, 1])
        bench.begin(2)
        #expect(bench.choices(4) == [0, 0, 1, 0])
    }

    @Test func `is the least loaded one that has not failed the request and is not ejected`() {
        let bench = Bench(endpoints: 4, balance: .leastRequests)
        for endpoint in [1, 2, 2, 3, 3, 3] { bench.begin(endpoint) }
        #expect(bench.choices(2, avoiding: 0) == [1, 1])
        bench.fail(1, refused: true)
        #expect(bench.choices(2, avoiding: 0) == [2, 2])
        #expect(bench.choices(2) == [0, 0])
    }

    @Test func `follows the policy of the last reload`() {
        let bench = Bench(endpoints: 2)
        bench.begin(1)
        #expect(bench.choices(2) == [1, 0])
        bench.adopt([Bench.upstream("api", Bench.addresses(0, 1), balance: .leastRequests)])
        #expect(bench.choices(2) == [0, 0])
        bench.adopt([Bench.upstream("api", Bench.addresses(0, 1), balance: Self.byHash)])
        #expect(bench.choices(2, hash: 1) == [1, 1])
    }

    // MARK: Every endpoint is ejected

    @Test(arguments: [UpstreamConfiguration.Balance.leastRequests, .roundRobin, .hash(header: "x-user")])
    func `is the one whose ejection ends first where all are ejected`(_ balance: UpstreamConfiguration.Balance) {
        let bench = Bench(endpoints: 3, balance: balance)
        bench.fail(0, refused: true, at: 200)
        bench.fail(1, refused: true, at: 300)
        bench.fail(2, refused: true, at: 100)
        #expect(bench.choices(4, hash: 1, now: 400) == [2, 2, 2, 2])
        #expect(bench.choices(4, hash: 1, avoiding: 2, now: 400) == [0, 0, 0, 0])
        #expect(bench.choices(4, hash: 1, avoiding: 0, now: 400) == [2, 2, 2, 2])
    }
}

@Suite struct `Kinds of balancing` {
    @Test func `need a hash only for a header`() {
        #expect(UpstreamConfiguration.Balance.hash(header: "").isHash)
        #expect(!UpstreamConfiguration.Balance.roundRobin.isHash)
        #expect(!UpstreamConfiguration.Balance.leastRequests.isHash)
    }
}
