import Testing

@testable import MartletDecisions
@testable import MartletProxy

private let second: Int64 = 1_000_000_000

/// The deadlines of a request whose body is received, as the loop arms them.
@Suite struct UploadDeadlineTests {
    /// When so many bytes arrive every so many seconds, so often.
    struct Upload: Sendable {
        var every: Int64
        var bytes: Int
        var times = Int.max
        var idle: Int64 = 20
        var rate = 100
    }

    /// The second in which an upload times out; `nil` where it goes on for ten minutes.
    private func timeout(of upload: Upload) -> Int64? {
        let rules = BodyPace.Rules(idleTimeout: upload.idle * second, minimumRate: upload.rate)
        var pace = BodyPace()
        pace.begin(now: 0)
        pace.restart(now: 0)
        var arrivals = 0
        var deadline = pace.nextCheck(now: 0, rules, awaitsContinue: false)
        for time in Int64(1)...600 {
            // What has arrived is read before timers are handled.
            if arrivals < upload.times, time % upload.every == 0 {
                arrivals += 1
                pace.add(upload.bytes)
                pace.restart(now: time * second)
                deadline = pace.nextCheck(now: time * second, rules, awaitsContinue: false)
            }
            guard deadline <= time * second else { continue }
            if pace.check(now: time * second, rules) == .timedOut { return time }
            deadline = pace.nextCheck(now: time * second, rules, awaitsContinue: false)
            #expect(deadline > time * second, "the next check is due already")
        }
        return nil
    }

    @Test(
        arguments: [
            // At the rate, and below it.
            (Upload(every: 1, bytes: 100), nil), (Upload(every: 1, bytes: 99), 30),
            (Upload(every: 10, bytes: 1000), nil), (Upload(every: 10, bytes: 999), 30),
            // In large pieces: what counts is the sum of each window.
            (Upload(every: 19, bytes: 3800), nil), (Upload(every: 19, bytes: 3000), nil),
            (Upload(every: 19, bytes: 2999), 30), (Upload(every: 19, bytes: 1), 30),
            // Silence up to the timeout, and longer.
            (Upload(every: 20, bytes: 10_000), nil), (Upload(every: 21, bytes: 1_000_000), 20),
            (Upload(every: 1, bytes: 1_000_000, times: 1), 21), (Upload(every: 1, bytes: 1_000_000, times: 25), 45),
            // Bytes of one window do not count in the next.
            (Upload(every: 1, bytes: 1_000_000, times: 30, idle: 600), 60),
            (Upload(every: 1, bytes: 1_000_000, times: 31, idle: 600), 90),
            // Any rate, and no rate at all.
            (Upload(every: 19, bytes: 1, rate: 0), nil), (Upload(every: 21, bytes: 1, rate: 0), 20),
            (Upload(every: 1, bytes: 0, rate: 0), nil), (Upload(every: 1, bytes: 0), 30),
        ] as [(Upload, Int64?)])
    func `an upload times out when it is silent or slow`(_ upload: Upload, _ expected: Int64?) {
        #expect(timeout(of: upload) == expected)
    }

    @Test func `each combination of states has one action`() {
        var counts: [RequestDeadline.Action: Int] = [:]
        for number in 0..<256 {
            let flags = (0..<8).map { number >> $0 & 1 == 1 }
            let deadline = RequestDeadline(
                isTunnel: flags[0], isProbePending: flags[1], isComplete: flags[2], isLocal: flags[3],
                hasResponseStarted: flags[4], awaitsContinue: flags[5], isPaused: flags[6], isCall: flags[7])
            counts[deadline.action, default: 0] += 1
        }
        // Half of the combinations are tunnels, half of the rest have a probe, and so on.
        #expect(
            counts == [
                .ignore: 128, .probePeer: 64, .failLocal: 8, .checkOutput: 24, .sendContinue: 16, .checkPause: 8,
                .checkCall: 4, .checkProgress: 4,
            ])
    }

    @Test func `the gateway sends 100 after a second, and then waits for the body`() {
        let rules = BodyPace.Rules(idleTimeout: 20 * second, minimumRate: 100)
        var exchange = Exchange()
        exchange.begin(downstream: .none, now: 0)
        exchange.request.expectsContinue = true
        exchange.responder = .upstream
        exchange.pace.restart(now: 0)
        let first = exchange.pace.nextCheck(now: 0, rules, awaitsContinue: exchange.awaitsContinue)
        let action = RequestDeadline(awaitsContinue: exchange.awaitsContinue).action
        exchange.request.hasContinued = true
        exchange.pace.restart(now: first)
        let next = exchange.pace.nextCheck(now: first, rules, awaitsContinue: exchange.awaitsContinue)
        #expect(first == second && action == .sendContinue && next == 21 * second)
    }

    @Test func `a client reads as long as it accepts bytes, even where the clock wraps around`() {
        let rows: [(last: Int64, now: Int64, expected: Bool)] = [
            (0, 19, true), (0, 20, false), (100, 119, true), (100, 120, false), (100, 100, true),
            (Int64.max - 5, Int64.min + 10, true), (Int64.max - 5, Int64.min + 14, false),
        ]
        for row in rows {
            let isReading = RequestDeadline.isReading(lastWriteAt: row.last, now: row.now, timeout: 20)
            #expect(isReading == row.expected, "\(row)")
        }
    }
}
