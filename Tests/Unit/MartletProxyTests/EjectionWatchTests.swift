import MartletConfig
import MartletCore
import MartletDecisionsTesting
import MartletTesting
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// The lines about endpoints that are ejected and respond again.
@Suite struct EjectionWatchTests {
    private let log = LogRecorder()
    private let watch: EjectionWatch

    init() { watch = EjectionWatch(Logger(log, minimum: .info)) }

    /// The endpoints of one loop, all of which report to the same watch.
    private func loop(_ number: Int = 0, endpoints count: Int) -> UpstreamDirectoryBench {
        let bench = UpstreamDirectoryBench(endpoints: count)
        bench.directory.ejections = LoopEjections(watch: watch, loop: number)
        return bench
    }

    private func fail(_ bench: UpstreamDirectoryBench, _ index: Int32, refused: Bool = true, at second: Int64 = 0) {
        bench.directory.failed(
            EndpointIndex(rawValue: index), refused: refused, now: second * UpstreamDirectoryBench.second)
    }

    private func succeed(_ bench: UpstreamDirectoryBench, _ index: Int32, at second: Int64) {
        bench.directory.succeeded(EndpointIndex(rawValue: index), now: second * UpstreamDirectoryBench.second)
    }

    @Test func `a change is one line, however many loops notice it`() {
        let (first, second) = (loop(endpoints: 2), loop(1, endpoints: 2))
        fail(first, 1)
        fail(second, 1)
        fail(first, 1, at: 2)
        let ejected =
            "warning upstream endpoint ejected upstream=api endpoint=http://10.0.0.1 reason=refused failures=1"
        #expect(log.texts == [ejected])
        succeed(first, 1, at: 6)
        fail(second, 1, at: 6)
        #expect(log.texts == [ejected])
        succeed(second, 1, at: 7)
        let back = "info upstream endpoint responds again upstream=api endpoint=http://10.0.0.1 ejected_seconds=7"
        #expect(log.texts == [ejected, back])
        fail(second, 1, at: 9)
        #expect(log.lines.count == 3)
    }

    @Test func `failures say how many there were`() {
        let bench = loop(endpoints: 2)
        for _ in 0..<4 { fail(bench, 0, refused: false) }
        #expect(log.lines.isEmpty)
        fail(bench, 0, refused: false)
        #expect(
            log.texts == [
                "warning upstream endpoint ejected upstream=api endpoint=http://10.0.0.0 "
                    + "reason=consecutive failures failures=5"
            ])
    }

    @Test func `a single endpoint is not ejected`() {
        let bench = loop(endpoints: 1)
        for _ in 0..<10 { fail(bench, 0) }
        succeed(bench, 0, at: 1)
        #expect(log.lines.isEmpty)
    }

    @Test func `an endpoint that leaves the configuration is forgotten`() {
        let bench = loop(endpoints: 2)
        fail(bench, 1)
        bench.adopt([UpstreamDirectoryBench.upstream("api", [SampleUpstream.address(0)])])
        succeed(bench, 1, at: 1)
        // Requests under way may still fail.
        fail(bench, 1, at: 2)
        #expect(log.lines.count == 1)
    }
}
