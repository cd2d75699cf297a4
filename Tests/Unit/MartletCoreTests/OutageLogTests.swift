import MartletTesting
import Testing

@testable import MartletCore

@Suite struct OutageLogTests {
    /// What happens at a second, and what is logged then.
    struct Step: Sendable, CustomTestStringConvertible {
        let second: Int
        /// `nil` for an attempt that succeeds.
        let reason: String?
        let logged: String

        init(_ second: Int, _ reason: String?, _ logged: String = "") {
            (self.second, self.reason, self.logged) = (second, reason, logged)
        }

        var testDescription: String { "\(second) s: \(reason ?? "succeeds")" }
    }

    private static let start = MonotonicTime(nanoseconds: 5_000_000_000)

    /// Plays the steps in order.
    private func play(_ steps: [Step]) {
        var log = OutageLog()
        for step in steps {
            let now = Self.start + .seconds(step.second)
            let logged: String =
                if let reason = step.reason {
                    log.failed(reason, at: now).map { "line \($0.unlogged)" } ?? ""
                } else {
                    log.succeeded(at: now).map { "end \($0.wholeSeconds)" } ?? ""
                }
            #expect(logged == step.logged, "\(step.testDescription)")
            #expect(log.isActive == (step.reason != nil))
        }
    }

    @Test func `an outage is a line for each reason, and its end another`() {
        play([
            Step(0, nil), Step(1, "a", "line 0"), Step(2, "a"), Step(3, "b", "line 1"), Step(4, "a"), Step(5, "b"),
            Step(61, nil, "end 60"), Step(62, nil),
        ])
    }

    @Test func `a long outage is logged again every ten minutes, with how many failures were not logged`() {
        let attempts = (1..<120).map { Step($0 * 5, "a") }
        play(
            [Step(0, "a", "line 0")] + attempts
                + [Step(600, "a", "line 119"), Step(605, "a"), Step(1199, "a"), Step(1200, "a", "line 2")]
                + [Step(1201, nil, "end 1201")])
    }

    @Test func `a new reason postpones the next line`() {
        play([
            Step(0, "a", "line 0"), Step(500, "b", "line 0"), Step(600, "a"), Step(1099, "b"),
            Step(1100, "a", "line 2"),
        ])
    }

    @Test func `the next outage begins anew`() {
        play([
            Step(0, "a", "line 0"), Step(5, "a"), Step(10, nil, "end 10"), Step(40, "a", "line 0"),
            Step(45, nil, "end 5"),
        ])
    }

    @Test func `attempts that fail and succeed in turn are one outage, whose end is logged once`() {
        play([
            Step(0, "a", "line 0"), Step(1, nil, "end 1"), Step(2, "a"), Step(3, nil), Step(32, "a"), Step(33, nil),
            Step(34, "b", "line 2"), Step(35, nil, "end 35"), Step(36, "a"), Step(65, nil), Step(94, "a"),
            Step(95, nil), Step(125, "a", "line 0"),
        ])
    }

    @Test func `attempts that fail and succeed in turn for ten minutes are logged again`() {
        let turns = (1..<60).flatMap { [Step($0 * 10, "a"), Step($0 * 10 + 1, nil)] }
        play(
            [Step(0, "a", "line 0"), Step(1, nil, "end 1")] + turns
                + [Step(600, "a", "line 59"), Step(601, nil, "end 601")])
    }

    @Test func `reasons whose text is always different do not fill the log`() {
        let first = (0..<OutageLog.maximumReasons).map { Step($0, "\($0)", "line 0") }
        let more = (OutageLog.maximumReasons..<300).map { Step($0, "\($0)") }
        let unlogged = more.count
        play(first + more + [Step(607, "other", "line \(unlogged)")])
    }
}

@Suite struct OutageReporterTests {
    @Test func `code and reason are compared, and what was not logged is counted`() {
        let seconds = Box<Int64>(0)
        let clock = Clock(
            unixTime: { UnixTime(seconds: 0) },
            monotonicTime: { MonotonicTime(nanoseconds: seconds.value * 1_000_000_000) })
        let log = LogRecorder()
        let reporter = OutageReporter(
            "not read", end: "read again", clock: clock, logger: Logger(log, minimum: .info, fields: [("host", "h")]))
        reporter.succeeded()
        for (second, code, reason) in [(1, "io.a", "x"), (2, "io.a", "x"), (3, "io.a", "y"), (4, "io.b", "y")] {
            seconds.withLock { $0 = Int64(second) }
            reporter.failed(ErrorCode(rawValue: code), reason)
        }
        seconds.withLock { $0 = 10 }
        reporter.succeeded()
        #expect(
            log.texts == [
                "warning not read host=h code=io.a reason=x", "warning not read host=h code=io.a reason=y unlogged=1",
                "warning not read host=h code=io.b reason=y", "info read again host=h seconds=9",
            ])
    }
}
