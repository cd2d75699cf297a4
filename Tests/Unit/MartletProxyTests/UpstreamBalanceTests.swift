import MartletConfig
import MartletDecisionsTesting
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
        let bench = Bench(Bench.upstream("api", SampleUpstream.addresses(1, 1), balance: balance))
        #expect(bench.choices(2, avoiding: 0) == [0, 0])
    }

    @Test func `belongs to the upstream`() {
        let bench = Bench(
            Bench.upstream("a", SampleUpstream.addresses(1, 2)), Bench.upstream("b", SampleUpstream.addresses(3, 4)))
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
        let bench = Bench(
            Bench.upstream("a", SampleUpstream.addresses(1, 2)), Bench.upstream("b", SampleUpstream.addresses(1, 2)))
        let chosen = [0, 1, 0, 0, 1].map { bench.choose($0) ?? -1 }
        #expect(chosen == [1, 3, 0, 1, 2])
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
        bench.adopt([Bench.upstream("api", SampleUpstream.addresses(0, 1))])
        #expect(bench.choices(3) == [1, 0, 1])
    }

    // MARK: Hash

    @Test(arguments: 0..<3)
    func `is the same for the same hash`(endpoint: Int) {
        let bench = Bench(endpoints: 3, balance: Self.byHash)
        let hash = bench.key(of: endpoint)
        #expect(bench.choices(4, hash: hash) == [endpoint, endpoint, endpoint, endpoint])
    }

    @Test func `is the same for the same hash in another process, whatever else is configured`() {
        let bench = Bench(
            Bench.upstream("z", SampleUpstream.addresses(9)),
            Bench.upstream("api", SampleUpstream.addresses(2, 1, 0), balance: Self.byHash))
        let other = Bench(endpoints: 3, balance: Self.byHash)
        for endpoint in 0..<3 {
            let chosen = bench.choose(1, hash: other.key(of: endpoint)).map { bench.endpoint($0).address }
            #expect(chosen == other.endpoint(endpoint).address)
        }
    }

    @Test func `is another one where that of the hash failed the request or is ejected`() {
        let bench = Bench(endpoints: 3, balance: Self.byHash)
        let hash = bench.key(of: 2)
        let second = bench.choose(hash: hash, avoiding: 2) ?? -1
        #expect(second == 0 || second == 1)
        #expect(bench.choices(2, hash: hash, avoiding: 2) == [second, second])
        bench.fail(second, refused: true)
        #expect(bench.choices(2, hash: hash, avoiding: 2) == [1 - second, 1 - second])
        #expect(bench.choices(2, hash: hash) == [2, 2])
    }

    @Test func `is the least loaded one for a request without a hash`() {
        let bench = Bench(endpoints: 2, balance: Self.byHash)
        bench.begin(0)
        #expect(bench.choices(3) == [1, 1, 1])
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
        bench.adopt([Bench.upstream("api", SampleUpstream.addresses(0, 1), balance: .leastRequests)])
        #expect(bench.choices(2) == [0, 0])
        bench.adopt([Bench.upstream("api", SampleUpstream.addresses(0, 1), balance: Self.byHash)])
        #expect(bench.choices(2, hash: bench.key(of: 1)) == [1, 1])
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
