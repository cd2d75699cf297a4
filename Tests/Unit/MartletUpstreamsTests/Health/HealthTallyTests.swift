import MartletCore
import Testing

@testable import MartletUpstreams

@Suite struct `The state of an endpoint by its probes` {
    struct Row: Sendable, CustomTestStringConvertible {
        /// `+` is a success, `-` a failure, one a second.
        let results: String
        let healthy: Int
        let unhealthy: Int
        /// `^` has become healthy, `v` unhealthy, `.` has not changed.
        let changes: String
        var testDescription: String { "\(results) with \(healthy) and \(unhealthy)" }
    }

    static let rows = [
        Row(results: "", healthy: 2, unhealthy: 3, changes: ""),
        Row(results: "+++++", healthy: 2, unhealthy: 3, changes: "....."),
        Row(results: "--", healthy: 2, unhealthy: 3, changes: ".."),
        Row(results: "---", healthy: 2, unhealthy: 3, changes: "..v"),
        Row(results: "------", healthy: 2, unhealthy: 3, changes: "..v..."),
        Row(results: "--+--+--+", healthy: 2, unhealthy: 3, changes: "........."),
        Row(results: "--+---", healthy: 2, unhealthy: 3, changes: ".....v"),
        Row(results: "---++", healthy: 2, unhealthy: 3, changes: "..v.^"),
        Row(results: "---+-+-++", healthy: 2, unhealthy: 3, changes: "..v.....^"),
        Row(results: "---++---++", healthy: 2, unhealthy: 3, changes: "..v.^..v.^"),
        Row(results: "-+-+", healthy: 1, unhealthy: 1, changes: "v^v^"),
        Row(results: "-++", healthy: 3, unhealthy: 1, changes: "v.."),
    ]

    @Test(arguments: rows) func `changes after so many results in a row`(_ row: Row) {
        var tally = HealthTally(at: MonotonicTime(nanoseconds: 0))
        let thresholds = HealthThresholds(healthy: row.healthy, unhealthy: row.unhealthy)
        #expect(tally.isHealthy)
        var changes = ""
        for (index, result) in row.results.enumerated() {
            let before = tally.isHealthy
            let now = MonotonicTime(nanoseconds: 0) + .seconds(index + 1)
            let lasted = tally.note(success: result == "+", thresholds, at: now)
            #expect((lasted != nil) == (before != tally.isHealthy))
            changes += lasted == nil ? "." : tally.isHealthy ? "^" : "v"
        }
        #expect(changes == row.changes)
    }

    @Test func `says how long the other state lasted`() {
        let start = MonotonicTime(nanoseconds: 5)
        var tally = HealthTally(at: start)
        let thresholds = HealthThresholds(healthy: 2, unhealthy: 1)
        #expect(tally.note(success: false, thresholds, at: start + .seconds(60)) == .seconds(60))
        #expect(tally.note(success: true, thresholds, at: start + .seconds(65)) == nil)
        #expect(tally.note(success: true, thresholds, at: start + .seconds(70)) == .seconds(10))
    }
}
