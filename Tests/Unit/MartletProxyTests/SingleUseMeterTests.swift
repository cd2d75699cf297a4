import Testing

@testable import MartletProxy

@Suite struct SingleUseMeterTests {
    private static let window = SingleUseMeter.window

    /// Counts so many connections in each window, looking once in the middle and once at the end of it.
    /// - Returns: whether there were many at the end of each, and how often listeners were to be told.
    private func run(_ counts: [Int]) -> (states: [Bool], told: [Int]) {
        var meter = SingleUseMeter()
        var now: Int64 = 5 * Self.window
        _ = meter.look(at: now)
        var (states, told): ([Bool], [Int]) = ([], [])
        for count in counts {
            var times = 0
            for _ in 0..<count { meter.note() }
            if meter.look(at: now + Self.window / 2) { times += 1 }
            now += Self.window
            if meter.look(at: now) { times += 1 }
            states.append(meter.isHigh)
            told.append(times)
        }
        return (states, told)
    }

    @Test func `few change nothing`() {
        let (states, told) = run([0, 1, SingleUseMeter.many - 1, 0])
        #expect(states == [false, false, false, false] && told == [0, 0, 0, 0])
    }

    @Test func `many are noticed within the window, and their end with a window that has few`() {
        var meter = SingleUseMeter()
        _ = meter.look(at: Self.window)
        for _ in 0..<SingleUseMeter.many { meter.note() }
        #expect(meter.look(at: Self.window + 1) && meter.isHigh)
        #expect(!meter.look(at: 2 * Self.window) && meter.isHigh)
        #expect(meter.look(at: 2 * Self.window + 1) && !meter.isHigh)
        #expect(!meter.look(at: 9 * Self.window) && !meter.isHigh)
    }

    @Test func `listeners are told at the first look and every ten seconds, whatever there is to tell`() {
        var meter = SingleUseMeter()
        #expect(meter.look(at: 0) && !meter.look(at: 1))
        for round in Int64(1)...3 {
            let due = round * SingleUseMeter.interval
            #expect(!meter.look(at: due - 1) && meter.look(at: due) && !meter.isHigh)
        }
    }

    @Test func `half as many keep it up, and listeners are told again in each window`() {
        let half = SingleUseMeter.many / 2
        let (states, told) = run([SingleUseMeter.many, half, half, half - 1, half])
        #expect(states == [true, true, true, false, false])
        #expect(told.dropFirst().allSatisfy { $0 <= 1 } && told[0] >= 1 && told[3] == 1 && told[4] == 0)
    }
}
