import MartletConfig
import MartletCore
import MartletResponder
import MartletTesting
import MartletTracing
import Testing

@testable import MartletDecisions
@testable import MartletProxy

/// Which requests of a loop are sampled, and what is kept of them.
@Suite struct `Traces of a loop` {
    private final class Receiver: SpanReceiving {
        let traces = Box<[FinishedTrace]>([])
        func take(_ traces: [FinishedTrace]) { self.traces.withLock { $0 += traces } }
        func count(_ loss: SpanLoss, _ spans: Int) {}
    }

    private static let parent = TraceContext(
        trace: TraceID(high: 1, low: 0), parent: SpanID(7), isSampled: true)

    private static func rules(millionths: Int, parent: TracingConfiguration.Parent = .trusted) -> TracingRules? {
        let url: URLText = "http://127.0.0.1:4318"
        var tracing = TracingConfiguration(
            collector: Located(url, at: SourceLocation(file: "config.yaml", line: 1, column: 1)))
        tracing.sample = SamplePercentage(millionths: millionths)
        tracing.parent = parent
        return TracingRules(tracing, LogConfiguration())
    }

    private static func handle(_ index: Int32, _ generation: UInt32 = 1) -> Handle<Exchange> {
        Handle(index: index, generation: generation)
    }

    @Test func `nothing is traced without a configuration, or without anyone who takes the spans`() {
        var tracing = LoopTracing(Receiver(), seeds: 1, 2)
        let isOff = !tracing.isOn && tracing.identity(of: Self.handle(1), started: 5) == nil
        #expect(isOff)
        tracing.adopt(Self.rules(millionths: 1_000_000))
        let isOn = tracing.isOn
        #expect(isOn)
        // What was traced before may be in progress.
        tracing.adopt(nil)
        let isStillOn = tracing.isOn && tracing.identity(of: Self.handle(1), started: 5) == nil
        #expect(isStillOn)
        var deaf = LoopTracing(nil, seeds: 1, 2)
        deaf.adopt(Self.rules(millionths: 1_000_000))
        let isDeaf = !deaf.isOn && deaf.trace(of: Self.handle(1), started: 5) == nil
        #expect(isDeaf)
    }

    @Test func `a request has one trace, however often it is asked for, and nothing is kept if it is not sampled`() {
        var tracing = LoopTracing(Receiver(), seeds: 1, 2)
        tracing.adopt(Self.rules(millionths: 0))
        let first = tracing.identity(of: Self.handle(1), started: 5)
        let second = tracing.identity(of: Self.handle(1), started: 5)
        #expect(first?.trace == second?.trace && first?.span == second?.span && first?.isSampled == false)
        let kept = tracing.trace(of: Self.handle(1), started: 5) != nil || tracing.owned(Self.handle(1)) != nil
        #expect(!kept)
        tracing.adopt(Self.rules(millionths: 1_000_000))
        let sampled = tracing.trace(of: Self.handle(1), started: 5)
        let again = tracing.trace(of: Self.handle(1), started: 5)
        #expect(sampled != nil && sampled === again && sampled?.trace == first?.trace)
        #expect(sampled?.server == first?.span && sampled?.parent == nil)
        // The next request in the same slot.
        let next = tracing.trace(of: Self.handle(1, 2), started: 6)
        #expect(next !== sampled && next?.trace != sampled?.trace)
        tracing.release(Self.handle(1, 2))
        let isReleased = tracing.owned(Self.handle(1, 2)) == nil
        #expect(isReleased)
    }

    @Test func `the context of a trusted proxy decides, and the first one counts`() {
        var tracing = LoopTracing(Receiver(), seeds: 1, 2)
        tracing.adopt(Self.rules(millionths: 0))
        tracing.note(Self.parent, state: [0x61], of: Self.handle(3))
        tracing.note(
            TraceContext(trace: TraceID(high: 9, low: 9), parent: SpanID(9), isSampled: false), state: [],
            of: Self.handle(3))
        let trace = tracing.trace(of: Self.handle(3), started: 5)
        #expect(trace?.trace == Self.parent.trace && trace?.parent == SpanID(7) && trace?.traceState == [0x61])
        #expect(trace?.server.isValid == true && trace?.server != SpanID(7))
        let other = tracing.identity(of: Self.handle(4), started: 5)
        #expect(other?.trace != Self.parent.trace && other?.isSampled == false)
        tracing.adopt(Self.rules(millionths: 0, parent: .none))
        tracing.note(Self.parent, state: [], of: Self.handle(5))
        let ignored = tracing.identity(of: Self.handle(5), started: 5)
        #expect(ignored?.isSampled == false && ignored?.trace != Self.parent.trace)
    }

    @Test func `spans are handed over together, and the last example of a bucket is reported`() {
        let receiver = Receiver()
        var tracing = LoopTracing(receiver, seeds: 1, 2)
        for low in 1...3 as ClosedRange<UInt64> {
            tracing.add(FinishedTrace(trace: TraceID(high: 1, low: low), state: [], spans: [], clockOffset: 0))
        }
        #expect(receiver.traces.value.isEmpty)
        tracing.flush()
        tracing.flush()
        #expect(receiver.traces.value.map(\.trace.low) == [1, 2, 3])
        for (trace, bucket) in [("a", 1), ("b", 2), ("c", 1)] {
            tracing.note(
                LoopReport.Exemplar(route: "r", bucket: bucket, trace: trace, microseconds: 1, unixMilliseconds: 1),
                route: RouteSlot(rawValue: 1))
        }
        let report = tracing.report
        #expect(Set(report.map(\.trace)) == ["b", "c"])
    }

    @Test(
        arguments: [
            ("api.example", "api.example", nil), ("api.example:8080", "api.example", 8080), ("[::1]", "::1", nil),
            ("[::1]:443", "::1", 443), ("", "", nil), (":", ":", nil), (":80", "", 80), ("a:", "a:", nil),
            ("a:b", "a:b", nil),
            ("a:80:", "a:80:", nil), ("a:b:1", "a:b", 1), ("[", "[", nil), ("]", "]", nil), ("[]", "", nil),
            ("[a", "[a", nil),
            ("a:99999999999999999999", "a:99999999999999999999", nil), ("é:1", "é", 1), ("[é]:-1", "é", -1),
        ] as [(String, String, Int?)])
    func `an authority has a host and perhaps a port`(authority: String, host: String, port: Int?) {
        let found = RequestTracing.hostAndPort(authority)
        #expect(found.host == host && found.port == port)
    }
}
