import Testing

@testable import MartletDecisions
@testable import MartletProxy

private let second: Int64 = 1_000_000_000

@Suite struct BodyPaceTests {
    /// 20 seconds, 100 bytes per second.
    private static let rules = BodyPace.Rules(idleTimeout: 20 * second, minimumRate: 100)
    private static let anyRate = BodyPace.Rules(idleTimeout: 20 * second, minimumRate: 0)
    private static let longIdle = BodyPace.Rules(idleTimeout: 3600 * second, minimumRate: 100)

    /// Progress of a body whose window began at 0, with so many bytes, the last of them at this second.
    private func arrived(bytes: Int, lastAt seconds: Int64) -> BodyPace {
        var pace = BodyPace()
        pace.begin(now: 0)
        pace.add(bytes)
        pace.restart(now: seconds * second)
        return pace
    }

    @Test func `the next check is at the end of the window, or earlier when nothing arrives`() {
        let cases: [(lastAt: Int64, rules: BodyPace.Rules, expected: Int64)] = [
            (0, Self.rules, 20), (5, Self.rules, 25), (10, Self.rules, 30), (11, Self.rules, 30), (29, Self.rules, 30),
            (0, Self.anyRate, 20), (11, Self.anyRate, 31), (29, Self.anyRate, 49), (0, Self.longIdle, 30),
        ]
        for one in cases {
            let next = arrived(bytes: 1, lastAt: one.lastAt).nextCheck(
                now: one.lastAt * second, one.rules, awaitsContinue: false)
            #expect(next == one.expected * second, "last at \(one.lastAt)")
        }
    }

    @Test func `a client that awaits 100 gets it a second later, whatever the other deadlines are`() {
        for now in [Int64(0), 7, 40] {
            let next = arrived(bytes: 0, lastAt: 0).nextCheck(now: now * second, Self.rules, awaitsContinue: true)
            #expect(next == (now + 1) * second)
        }
    }

    @Test func `a check finds what is idle, or slow over a window`() {
        typealias Row = (bytes: Int, lastAt: Int64, now: Int64, rules: BodyPace.Rules, expected: BodyPace.Check)
        let cases: [Row] = [
            // Within the window only silence counts.
            (0, 0, 19, Self.rules, .arriving), (0, 0, 20, Self.rules, .timedOut), (1, 9, 28, Self.rules, .arriving),
            (1_000_000, 9, 29, Self.rules, .timedOut), (0, 0, 29, Self.longIdle, .arriving),
            // At its end the rate counts, over the whole time.
            (2999, 29, 30, Self.rules, .timedOut), (3000, 29, 30, Self.rules, .arriving),
            (3000, 29, 31, Self.rules, .timedOut), (3100, 29, 31, Self.rules, .arriving),
            (3000, 11, 30, Self.rules, .arriving), (3000, 10, 30, Self.rules, .timedOut),
            (359_999, 3599, 3600, Self.longIdle, .timedOut), (360_000, 3599, 3600, Self.longIdle, .arriving),
            // Any rate.
            (0, 29, 30, Self.anyRate, .arriving), (0, 29, 49, Self.anyRate, .timedOut),
        ]
        for one in cases {
            var pace = arrived(bytes: one.bytes, lastAt: one.lastAt)
            let check = pace.check(now: one.now * second, one.rules)
            #expect(check == one.expected, "\(one.bytes) bytes, the last at \(one.lastAt), at \(one.now)")
            let isNext = check == .arriving && one.now >= 30
            #expect(pace.windowStart == (isNext ? one.now * second : 0))
            #expect(pace.windowBytes == (isNext ? 0 : one.bytes))
        }
    }

    @Test func `deadlines are exact`() {
        var pace = arrived(bytes: 2999, lastAt: 29)
        let before = pace.check(now: 30 * second - 1, Self.rules)
        #expect(before == .arriving && pace.windowStart == 0)
        let at = pace.check(now: 30 * second, Self.rules)
        #expect(at == .timedOut)
        var idle = arrived(bytes: 1, lastAt: 3)
        let early = idle.check(now: 23 * second - 1, Self.rules)
        let late = idle.check(now: 23 * second, Self.rules)
        #expect(early == .arriving && late == .timedOut)
    }

    @Test func `every window is measured alone`() {
        var pace = arrived(bytes: 9000, lastAt: 29)
        let first = pace.check(now: 30 * second, Self.rules)
        pace.add(2999)
        pace.restart(now: 59 * second)
        let next = pace.check(now: 60 * second, Self.rules)
        #expect(first == .arriving && next == .timedOut)
    }

    @Test func `a new window starts without bytes, and leaves the time of the last ones`() {
        var pace = arrived(bytes: 5, lastAt: 3)
        pace.begin(now: 7 * second)
        #expect(pace.windowStart == 7 * second && pace.windowBytes == 0 && pace.receivedAt == 3 * second)
    }
}

@Suite struct RequestDeadlineTests {
    @Test func `the action follows from the state of the exchange`() {
        let cases: [(RequestDeadline, RequestDeadline.Action)] = [
            (RequestDeadline(), .checkProgress),
            (RequestDeadline(isLocal: true), .checkProgress),
            (RequestDeadline(hasResponseStarted: true), .checkProgress),
            (RequestDeadline(isTunnel: true), .ignore),
            (RequestDeadline(isProbePending: true), .probePeer),
            (RequestDeadline(isComplete: true), .checkOutput),
            (RequestDeadline(isComplete: true, isLocal: true), .failLocal),
            (RequestDeadline(isComplete: true, isLocal: true, hasResponseStarted: true), .checkOutput),
            (RequestDeadline(isComplete: true, hasResponseStarted: true), .checkOutput),
            (RequestDeadline(awaitsContinue: true), .sendContinue),
            (RequestDeadline(isPaused: true), .checkPause),
            (RequestDeadline(isCall: true), .checkCall),
        ]
        for (deadline, expected) in cases { #expect(deadline.action == expected, "\(deadline)") }
    }

    @Test func `the earlier state has precedence`() {
        var deadline = RequestDeadline(
            isTunnel: true, isProbePending: true, isComplete: true, isLocal: true, awaitsContinue: true,
            isPaused: true, isCall: true)
        var actions = [deadline.action]
        deadline.isTunnel = false
        actions.append(deadline.action)
        deadline.isProbePending = false
        actions.append(deadline.action)
        deadline.hasResponseStarted = true
        actions.append(deadline.action)
        deadline.isComplete = false
        actions.append(deadline.action)
        deadline.awaitsContinue = false
        actions.append(deadline.action)
        deadline.isPaused = false
        actions.append(deadline.action)
        deadline.isCall = false
        actions.append(deadline.action)
        #expect(
            actions == [
                .ignore, .probePeer, .failLocal, .checkOutput, .sendContinue, .checkPause, .checkCall, .checkProgress,
            ])
    }

    @Test func `a paused exchange is stuck when neither side reads`() {
        for (isPaused, isReading, expected) in [
            (true, true, false), (true, false, true), (false, true, false), (false, false, false),
        ] {
            #expect(RequestDeadline.isStuck(isUpstreamPaused: isPaused, isReading: isReading) == expected)
        }
    }

    @Test func `a client reads when it has accepted bytes within the timeout`() {
        for (last, now, expected) in [(Int64(0), Int64(0), true), (5, 24, true), (5, 25, false), (5, 99, false)] {
            #expect(RequestDeadline.isReading(lastWriteAt: last, now: now, timeout: 20) == expected)
        }
    }

    @Test func `a client awaits 100 until it is sent, or something else happens`() {
        let changes: [(String, (inout Exchange) -> Void)] = [
            ("no expectation", { $0.request.expectsContinue = false }),
            ("100 was sent", { $0.request.hasContinued = true }),
            ("the body has begun", { $0.body.skip(1) }),
            ("nothing was decided", { $0.responder = .none }),
            ("a local handler", { $0.responder = .local }),
            ("the response has begun", { $0.response.hasStarted = true }),
        ]
        for (name, change) in [("", { (_: inout Exchange) in })] + changes {
            var exchange = Exchange()
            exchange.request.expectsContinue = true
            exchange.responder = .upstream
            change(&exchange)
            let awaits = exchange.awaitsContinue
            #expect(awaits == name.isEmpty, "\(name)")
        }
    }
}
