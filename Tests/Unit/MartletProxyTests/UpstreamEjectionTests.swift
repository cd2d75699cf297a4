import MartletConfig
import MartletDecisionsTesting
import MartletTraffic
import Testing

@testable import MartletProxy

@Suite struct `A failing endpoint` {
    private typealias Bench = UpstreamDirectoryBench
    private static let second = Bench.second

    /// Two endpoints: requests are for the first while it is usable, and otherwise for the second.
    private func makeBench() -> Bench { Bench(endpoints: 2, balance: .hash(header: "x-user")) }

    private func isUsable(_ bench: Bench, at now: Int64) -> Bool { bench.choose(hash: bench.key(of: 0), now: now) == 0 }

    @Test func `is ejected for a second after five failures in a row`() {
        let bench = makeBench()
        for failure in 1...4 {
            bench.fail(0, at: 10)
            #expect(bench.endpoint(0).ejection.failures == failure)
            #expect(isUsable(bench, at: 10))
        }
        bench.fail(0, at: 11)
        let endpoint = bench.endpoint(0)
        #expect(
            endpoint.ejection.failures == 5 && endpoint.ejection.count == 1
                && endpoint.ejection.until == Self.second + 11)
        #expect(!isUsable(bench, at: 11))
        #expect(!isUsable(bench, at: Self.second + 10))
        #expect(isUsable(bench, at: Self.second + 11))
    }

    @Test func `is not ejected where a response came between the failures`() {
        let bench = makeBench()
        for _ in 0..<4 { bench.fail(0) }
        bench.succeed(0)
        #expect(bench.endpoint(0).ejection.failures == 0)
        for _ in 0..<4 { bench.fail(0) }
        #expect(isUsable(bench, at: 0))
        bench.fail(0)
        #expect(!isUsable(bench, at: 0))
    }

    @Test func `is ejected immediately where it refused a connection`() {
        let bench = makeBench()
        bench.fail(0, refused: true, at: 3)
        let endpoint = bench.endpoint(0)
        #expect(
            endpoint.ejection.failures == 1 && endpoint.ejection.count == 1
                && endpoint.ejection.until == Self.second + 3)
        #expect(!isUsable(bench, at: Self.second + 2))
        #expect(isUsable(bench, at: Self.second + 3))
    }

    @Test func `does not affect another one`() {
        let bench = makeBench()
        bench.fail(0, refused: true)
        let other = bench.endpoint(1)
        #expect(other.ejection.failures == 0 && other.ejection.count == 0 && other.ejection.until == 0)
        #expect(bench.choose(hash: bench.key(of: 1)) == 1)
    }

    @Test func `is not ejected for longer by failures during its ejection`() {
        let bench = makeBench()
        bench.fail(0, refused: true, at: 0)
        bench.fail(0, refused: true, at: 1)
        for _ in 0..<5 { bench.fail(0, at: Self.second - 1) }
        let endpoint = bench.endpoint(0)
        #expect(
            endpoint.ejection.failures == 7 && endpoint.ejection.count == 1 && endpoint.ejection.until == Self.second)
        #expect(isUsable(bench, at: Self.second))
    }

    @Test(arguments: [false, true])
    func `is ejected for twice as long after each failed half-open attempt, up to a minute`(refused: Bool) {
        let bench = makeBench()
        var now: Int64 = 5
        var spans: [Int64] = []
        bench.fail(0, refused: true, at: now)
        for _ in 0..<10 {
            let until = bench.endpoint(0).ejection.until
            spans.append(until - now)
            now = until
            bench.begin(0)
            bench.fail(0, refused: refused, at: now)
            bench.end(0)
        }
        let seconds: [Int64] = [1, 2, 4, 8, 16, 32, 60, 60, 60, 60]
        #expect(spans == seconds.map { $0 * Self.second })
        #expect(bench.endpoint(0).ejection.failures == 11 && bench.endpoint(0).ejection.count == 11)
    }

    @Test func `is ejected for a second again after it has responded`() {
        let bench = makeBench()
        bench.fail(0, refused: true, at: 0)
        bench.fail(0, refused: true, at: Self.second)
        #expect(bench.endpoint(0).ejection.until == 3 * Self.second)
        bench.succeed(0)
        #expect(bench.endpoint(0).ejection.failures == 0 && bench.endpoint(0).ejection.count == 0)
        #expect(isUsable(bench, at: Self.second))
        bench.fail(0, refused: true, at: 4 * Self.second)
        #expect(bench.endpoint(0).ejection.until == 5 * Self.second)
    }
}

@Suite struct `A half-open endpoint` {
    private typealias Bench = UpstreamDirectoryBench
    private static let second = Bench.second

    /// Two endpoints, the first of which was ejected until the end of the first second.
    private func makeBench() -> Bench {
        let bench = Bench(endpoints: 2, balance: .hash(header: "x-user"))
        bench.fail(0, refused: true, at: 0)
        return bench
    }

    @Test func `gets one request at a time`() {
        let bench = makeBench()
        #expect(bench.choose(hash: bench.key(of: 0), now: Self.second) == 0)
        bench.begin(0)
        #expect(bench.endpoint(0).ejection.isHalfOpen)
        #expect(bench.choose(hash: bench.key(of: 0), now: Self.second) == 1)
        #expect(bench.choose(hash: bench.key(of: 0), now: 100 * Self.second) == 1)
    }

    @Test func `gets another request where one ended without a result`() {
        let bench = makeBench()
        bench.begin(0)
        bench.end(0)
        #expect(!bench.endpoint(0).ejection.isHalfOpen && bench.endpoint(0).ejection.count == 1)
        #expect(bench.choose(hash: bench.key(of: 0), now: Self.second) == 0)
    }

    @Test func `gets every request once it has responded`() {
        let bench = makeBench()
        bench.begin(0)
        bench.succeed(0)
        #expect(!bench.endpoint(0).ejection.isHalfOpen)
        bench.begin(0)
        #expect(!bench.endpoint(0).ejection.isHalfOpen && bench.endpoint(0).active == 2)
        #expect(bench.choose(hash: bench.key(of: 0), now: Self.second) == 0)
    }

    @Test func `is ejected again when the request fails`() {
        let bench = makeBench()
        bench.begin(0)
        bench.fail(0, at: Self.second)
        #expect(!bench.endpoint(0).ejection.isHalfOpen && bench.endpoint(0).ejection.count == 2)
        #expect(bench.choose(hash: bench.key(of: 0), now: 3 * Self.second - 1) == 1)
        #expect(bench.choose(hash: bench.key(of: 0), now: 3 * Self.second) == 0)
    }

    @Test func `is not a healthy one that gets a request`() {
        let bench = makeBench()
        bench.begin(1)
        #expect(!bench.endpoint(1).ejection.isHalfOpen && bench.endpoint(1).active == 1)
        bench.end(1)
        #expect(bench.endpoint(1).active == 0)
    }

    @Test func `is not one with failures that did not suffice for an ejection`() {
        let bench = makeBench()
        bench.fail(1)
        bench.begin(1)
        #expect(!bench.endpoint(1).ejection.isHalfOpen)
        #expect(bench.choose(hash: bench.key(of: 1)) == 1)
    }
}

@Suite struct `Idle connections of an endpoint` {
    private typealias Bench = UpstreamDirectoryBench

    @Test func `are not kept for one that is retired`() {
        let bench = Bench(Bench.upstream("a", SampleUpstream.addresses(1, 2)))
        bench.adopt([Bench.upstream("a", SampleUpstream.addresses(2))])
        #expect(!bench.keepsIdle(0))
        #expect(bench.keepsIdle(1))
        bench.adopt([Bench.upstream("a", SampleUpstream.addresses(1))])
        #expect(bench.keepsIdle(0))
    }

    @Test func `are not kept where each names its client in a PROXY header`() {
        var proxied = UpstreamTransport()
        proxied.sendsProxyProtocol = true
        let bench = Bench(
            Bench.upstream("a", SampleUpstream.addresses(1), transport: proxied),
            Bench.upstream("b", SampleUpstream.addresses(1)))
        #expect(!bench.keepsIdle(0))
        #expect(bench.keepsIdle(1))
    }
}
