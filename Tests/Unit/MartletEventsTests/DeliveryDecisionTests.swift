import MartletCore
import MartletJSON
import MartletTesting
import Testing

@testable import MartletEvents

/// A delivery of one subject; its event has the number as id.
func delivery(_ number: Int64, of subject: String = "usr_1", attempts: Int = 0, created: Int64 = 0) -> DueDelivery {
    let event = Event(id: "e\(number)", type: .accountCreated, subject: subject, time: created, data: [:])
    return DueDelivery(number: number, event: event, attempts: attempts)
}

@Suite struct RetryScheduleTests {
    private let schedule = RetrySchedule(maximumAge: .seconds(7 * 86_400))

    @Test(
        arguments: [
            (1, 1_000), (2, 2_000), (3, 4_000), (8, 128_000), (9, 256_000), (10, 300_000), (1_000, 300_000), (0, 1_000),
            (-5, 1_000), (Int.max, 300_000),
        ] as [(Int, Int64)])
    func `doubles from a second to five minutes`(attempts: Int, delay: Int64) {
        #expect(schedule.retry(after: attempts, of: 50, at: 100, random: 0.5) == 100 + delay)
    }

    @Test(arguments: [(0.0, 8_000), (0.5, 10_000), (1.0, 12_000), (-3.0, 8_000), (9.0, 12_000)] as [(Double, Int64)])
    func `spreads by a fifth`(random: Double, delay: Int64) throws {
        let steady = try #require(schedule.retry(after: 4, of: 0, at: 0, random: 0.5))
        let spread = try #require(schedule.retry(after: 4, of: 0, at: 0, random: random))
        #expect(spread == steady * delay / 10_000)
    }

    @Test func `gives up at the maximum age`() {
        let limit: Int64 = 7 * 86_400_000
        #expect(schedule.retry(after: 1, of: 1_000, at: 1_000 + limit - 1, random: 0) != nil)
        #expect(schedule.retry(after: 1, of: 1_000, at: 1_000 + limit, random: 0) == nil)
    }

    @Test func `survives clocks that jump`() {
        #expect(schedule.retry(after: 1, of: 5_000, at: 0, random: 0.5) == 1_000)
        #expect(schedule.retry(after: 1, of: .min, at: .max, random: 0.5) == nil)
        #expect(schedule.retry(after: 1, of: .max, at: .min, random: 0.5) == nil)
        #expect(schedule.retry(after: 1, of: .max, at: .max, random: 1) == .max)
    }
}

@Suite struct DeliveryOutcomeTests {
    private let schedule = RetrySchedule(maximumAge: .seconds(60))

    private func outcome(_ attempt: DeliveryAttempt, at now: Int64 = 0) -> DeliveryOutcome {
        DeliveryOutcome(attempt, of: delivery(1, attempts: 2), schedule, at: now, random: 0.5)
    }

    @Test(arguments: [200, 201, 202, 204, 299])
    func `is confirmed by any 2xx`(status: Int) {
        #expect(outcome(DeliveryAttempt(HTTPCallResponse(status: status, body: Array("<html>".utf8)))) == .delivered)
    }

    @Test(arguments: [100, 199, 300, 301, 400, 401, 404, 410, 429, 500, 503, 0])
    func `is retried after any other status`(status: Int) {
        let response = outcome(DeliveryAttempt(HTTPCallResponse(status: status, body: [])))
        #expect(response == .retry(at: 4_000, reason: "events.status: status \(status)"))
    }

    @Test func `is retried without a response`() {
        #expect(
            outcome(.failed(reason: "fetch.timeout: a.test timed out"))
                == .retry(at: 4_000, reason: "fetch.timeout: a.test timed out"))
    }

    @Test func `is given up when it is too old`() {
        let late = outcome(DeliveryAttempt(HTTPCallResponse(status: 410, body: [])), at: 60_000)
        #expect(late == .dead(reason: "events.status: status 410"))
    }

    @Test func `is given up when it is refused for good`() {
        #expect(outcome(.refused(reason: "smtp.rejected")) == .dead(reason: "smtp.rejected"))
    }
}

@Suite struct DeliveryWindowTests {
    @Test func `sends one event of a subject at a time`() {
        var window = DeliveryWindow(capacity: 8)
        let due = [delivery(1, of: "a"), delivery(2, of: "b"), delivery(3, of: "a")]
        #expect(window.admit(due, atMost: 8).map(\.number) == [1, 2])
        #expect(window.admit(due, atMost: 8).isEmpty)
        window.remove(1)
        #expect(window.admit([delivery(2, of: "b"), delivery(3, of: "a")], atMost: 8).map(\.number) == [3])
    }

    @Test func `is bounded`() {
        var window = DeliveryWindow(capacity: 2)
        let due = (1...5).map { delivery($0, of: "s\($0)") }
        #expect(window.free == 2 && window.admit(due, atMost: 0).isEmpty)
        #expect(window.admit(due, atMost: 1).map(\.number) == [1])
        #expect(window.admit(due, atMost: 9).map(\.number) == [2])
        #expect(window.free == 0 && window.count == 2 && window.admit(due, atMost: 9).isEmpty)
        window.remove(2)
        #expect(window.admit(due.filter { $0.number != 2 }, atMost: 9).map(\.number) == [3])
        for number in 1...3 { window.remove(Int64(number)) }
        #expect(window.count == 0 && window.free == 2)
    }

    @Test func `forgets unknown numbers without harm`() {
        var window = DeliveryWindow(capacity: 0)
        window.remove(7)
        #expect(window.count == 0 && window.admit([delivery(1)], atMost: 1).count == 1)
    }
}

@Suite struct DeliveryPaceTests {
    private func at(_ milliseconds: Int64) -> MonotonicTime { MonotonicTime(nanoseconds: milliseconds * 1_000_000) }

    @Test func `is limited by free places alone while attempts succeed`() {
        var pace = DeliveryPace()
        for number in 0..<100 {
            pace.note(success: number % 8 == 0)
            #expect(!pace.isDown && pace.allowed(free: 5, inProgress: 27, at: at(0)) == 5)
        }
    }

    @Test func `is one a second when eight attempts in a row have failed, until one succeeds`() {
        var pace = DeliveryPace()
        for _ in 0..<7 { pace.note(success: false) }
        #expect(pace.allowed(free: 32, inProgress: 0, at: at(0)) == 32)
        pace.noteAttempt(at: at(0))
        pace.note(success: false)
        #expect(pace.isDown && pace.allowed(free: 32, inProgress: 0, at: at(999)) == 0)
        #expect(pace.allowed(free: 32, inProgress: 0, at: at(1000)) == 1)
        #expect(pace.allowed(free: 31, inProgress: 1, at: at(1000)) == 0)
        #expect(pace.allowed(free: 0, inProgress: 0, at: at(1000)) == 0)
        pace.noteAttempt(at: at(1000))
        #expect(pace.allowed(free: 32, inProgress: 0, at: at(1999)) == 0)
        pace.note(success: true)
        #expect(!pace.isDown && pace.allowed(free: 32, inProgress: 0, at: at(1001)) == 32)
    }
}

@Suite struct LeaseTests {
    private func at(_ seconds: Int64) -> MonotonicTime { MonotonicTime(nanoseconds: seconds * 1_000_000_000) }

    @Test func `is acquired first and extended in time`() {
        var lease = Lease()
        #expect(!lease.isHeld(at: at(0)) && lease.isDue(at: at(0)))
        lease.note(isHeld: true, since: at(0))
        #expect(lease.isHeld(at: at(0)) && !lease.isDue(at: at(2)) && lease.isDue(at: at(3)))
        lease.note(isHeld: true, since: at(3))
        #expect(lease.isHeld(at: at(11)))
    }

    @Test func `is not acted on shortly before another instance may take it`() {
        var lease = Lease()
        lease.note(isHeld: true, since: at(0))
        #expect(lease.isHeld(at: at(8)) && !lease.isHeld(at: at(9)))
    }

    @Test func `is asked for again when another instance has it`() {
        var lease = Lease()
        lease.note(isHeld: true, since: at(0))
        lease.note(isHeld: false, since: at(3))
        #expect(!lease.isHeld(at: at(3)) && !lease.isDue(at: at(3)) && lease.isDue(at: at(4)))
    }

    @Test func `is held through failures of the store until it expires, and asked for soon`() {
        var lease = Lease()
        lease.note(isHeld: true, since: at(0))
        lease.noteFailure(at: at(3))
        #expect(lease.isHeld(at: at(4)) && lease.isDue(at: at(4)))
        #expect(!lease.isHeld(at: at(9)))
    }
}
