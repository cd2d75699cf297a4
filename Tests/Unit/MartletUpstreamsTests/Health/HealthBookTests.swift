import MartletCore
import MartletFetch
import MartletTesting
import Testing

@testable import MartletUpstreams

private let start = MonotonicTime(nanoseconds: 1_000_000_000_000)

@Suite struct `Which endpoint is probed when` {
    private func target(
        _ id: Int, upstream: String = "api", path: String = "/", interval: Duration = .seconds(5), jitter: Int = 0,
        unhealthy: Int = 1
    ) -> HealthTarget {
        var request = ProbeRequest(to: .tcp(address: "127.0.0.1", port: 80), host: "a")
        request.path = path
        return HealthTarget(
            id: id, upstream: upstream, request: request, interval: interval, jitter: jitter,
            thresholds: HealthThresholds(healthy: 1, unhealthy: unhealthy))
    }

    /// Begins what is due.
    private func begin(_ book: inout HealthBook, at now: MonotonicTime) -> [Int] {
        var begun: [Int] = []
        while let next = book.begin(at: now) { begun.append(next.target) }
        return begun
    }

    @Test func `nothing to probe`() {
        var book = HealthBook()
        #expect(book.isEmpty)
        #expect(book.nextStart == nil)
        #expect(book.begin(at: start) == nil)
    }

    @Test(arguments: [(1, 5_000, 0), (2, 5_000, 500), (500, 5_000, 998), (2, 400, 200), (10_000, 5_000, 4_999)])
    func `the first probes of few begin within a second, of many within the interval`(
        _ count: Int, interval: Int, last: Int
    ) {
        var book = HealthBook()
        book.adopt((0..<count).map { target($0, interval: .milliseconds(interval)) }, at: start)
        #expect(book.nextStart == start)
        var (now, begun): (MonotonicTime, [Int]) = (start, [])
        while let next = book.nextStart {
            now = next
            for id in begin(&book, at: now) {
                begun.append(id)
                // So that the number of those in flight is no bound.
                _ = book.finish(id, .success(""), at: now, random: 0)
            }
            if begun.count >= count { break }
        }
        #expect(Set(begun.prefix(count)).count == count)
        #expect(now.since(start).wholeMilliseconds == Int64(last))
    }

    @Test(arguments: [
        (0, 0.5, 5_000), (20, 0, 5_000), (20, 1, 4_000), (20, 0.5, 4_500), (50, 1, 2_500), (20, 7, 4_000),
    ])
    func `the next probe begins an interval after the last began, less the jitter`(
        _ jitter: Int, random: Double, milliseconds: Int
    ) {
        var book = HealthBook()
        book.adopt([target(0, jitter: jitter)], at: start)
        #expect(begin(&book, at: start) == [0])
        #expect(book.nextStart == nil)
        _ = book.finish(0, .success(""), at: start + .milliseconds(300), random: random)
        #expect(book.nextStart == start + .milliseconds(milliseconds))
    }

    @Test func `a probe that took longer than its interval is followed immediately`() {
        var book = HealthBook()
        book.adopt([target(0, jitter: 20)], at: start)
        _ = begin(&book, at: start)
        _ = book.finish(0, .success(""), at: start + .seconds(9), random: 1)
        #expect(book.nextStart == start + .seconds(9))
    }

    @Test func `only so many probes are in flight, and others wait in order`() {
        var book = HealthBook()
        book.adopt((0..<300).map { target($0) }, at: start)
        let now = start + .seconds(1)
        #expect(begin(&book, at: now) == Array(0..<256))
        #expect(book.nextStart == nil)
        _ = book.finish(7, .failure("timeout"), at: now, random: 0)
        #expect(book.nextStart != nil)
        #expect(begin(&book, at: now) == [256])
        #expect(book.counts["api"]?.delayed == 0)
        for id in [1, 2] { _ = book.finish(id, .success(""), at: now, random: 0) }
        #expect(begin(&book, at: now + .seconds(20)) == [257, 258])
        #expect(book.counts["api"]?.delayed == 2)
    }

    @Test func `a change is reported once, with its reason`() {
        var book = HealthBook()
        book.adopt([target(3, unhealthy: 2)], at: start)
        var changes: [HealthChange] = []
        for (second, result) in ["-", "-", "-", "+", "+"].enumerated() {
            let now = start + .seconds(5 * second)
            #expect(begin(&book, at: now) == [3])
            let seen: ProbeResult = result == "+" ? .success("status 200") : .failure("status 503")
            if let change = book.finish(3, seen, at: now, random: 0) { changes.append(change) }
        }
        #expect(
            changes == [
                HealthChange(target: 3, isHealthy: false, reason: "status 503", lasted: .seconds(5)),
                HealthChange(target: 3, isHealthy: true, reason: "status 200", lasted: .seconds(10)),
            ])
        var counts = HealthCounts()
        (counts.successes, counts.failures, counts.endpoints) = (2, 3, 1)
        #expect(book.counts == ["api": counts])
    }

    @Test func `a reload keeps the state of what stays`() {
        var book = HealthBook()
        book.adopt([target(1), target(2)], at: start)
        #expect(begin(&book, at: start + .seconds(1)) == [1, 2])
        for id in [1, 2] { #expect(book.finish(id, .failure("x"), at: start + .seconds(1), random: 0) != nil) }
        #expect(book.counts["api"]?.unhealthy == 2)
        book.adopt([target(1, path: "/new"), target(3), target(4, upstream: "other")], at: start + .seconds(2))
        #expect(book.counts["api"]?.unhealthy == 1)
        #expect(book.counts["api"]?.endpoints == 2)
        #expect(book.counts["api"]?.failures == 2)
        #expect(book.counts["other"]?.endpoints == 1)
        // The new ones are due, the other has its time.
        #expect(begin(&book, at: start + .seconds(3)) == [3, 4])
        let next = book.begin(at: start + .seconds(6))
        #expect(next?.target == 1)
        #expect(next?.request.path == "/new")
        #expect(book.finish(1, .failure("x"), at: start + .seconds(6), random: 0) == nil)
        book.adopt([], at: start + .seconds(7))
        #expect(book.isEmpty)
        #expect(book.counts.isEmpty)
    }

    @Test func `the result for an endpoint that is gone is dropped`() {
        var book = HealthBook()
        book.adopt([target(1)], at: start)
        #expect(begin(&book, at: start) == [1])
        book.adopt([target(2)], at: start)
        #expect(book.finish(1, .failure("x"), at: start, random: 0) == nil)
        #expect(begin(&book, at: start) == [2])
    }

    @Test func `one that is in flight during a reload is not begun twice`() {
        var book = HealthBook()
        book.adopt([target(1)], at: start)
        #expect(begin(&book, at: start) == [1])
        book.adopt([target(1, interval: .seconds(1))], at: start)
        #expect(book.nextStart == nil)
        _ = book.finish(1, .success(""), at: start, random: 0)
        #expect(book.nextStart == start + .seconds(1))
        book.adopt([target(1, interval: .milliseconds(100))], at: start)
        #expect(book.nextStart == start + .milliseconds(100))
    }

    @Test func `many endpoints have no kept connections`() {
        var book = HealthBook()
        book.adopt((0..<1024).map { target($0) }, at: start)
        #expect(book.keepsConnections)
        book.adopt((0..<1025).map { target($0) }, at: start)
        #expect(!book.keepsConnections)
    }

    @Test func `the queue gives targets by time`() {
        var generator = SeededGenerator(seed: 1)
        var queue = ProbeQueue()
        var expected: [(Int64, Int)] = []
        for id in 0..<500 {
            let due = Int64.random(in: 0..<100, using: &generator)
            queue.insert(id, due: MonotonicTime(nanoseconds: due))
            expected.append((due, id))
        }
        expected.sort { $0 < $1 }
        #expect(queue.popDue(at: MonotonicTime(nanoseconds: -1)) == nil)
        for (due, id) in expected {
            #expect(queue.nextDue == MonotonicTime(nanoseconds: due))
            #expect(queue.popDue(at: MonotonicTime(nanoseconds: 100))?.target == id)
        }
        #expect(queue.popDue(at: .never) == nil)
    }
}
