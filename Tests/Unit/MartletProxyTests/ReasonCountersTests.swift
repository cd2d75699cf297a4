import MartletCore
import MartletProvider
import MartletResponder
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct `Counters of reasons` {
    private func reasons(_ counters: borrowing ReasonCounters) -> [String: Int] {
        var report = LoopReport()
        counters.add(to: &report)
        return report.reasons
    }

    @Test func `begin with success, which is never counted`() {
        var counters = ReasonCounters()
        for _ in 0..<3 { counters.count(0) }
        let (codes, texts, members) = (counters.codes, counters.texts, counters.members)
        let counted = reasons(counters)
        #expect(codes == ["ok"])
        #expect(texts == [Array("ok".utf8)] && members == [[]])
        #expect(counted.isEmpty)
    }

    @Test func `have an index for each condition, and count by code`() {
        func failure(_ condition: String?) -> Failure {
            var failure = Failure.notAllowed("policy.claim_missing")
            failure.condition = condition
            return failure
        }
        var counters = ReasonCounters()
        let indices = [
            counters.index(of: failure("authorize[0] a")), counters.index(of: failure("authorize[1] b\"c")),
            counters.index(of: failure("authorize[0] a")), counters.index(of: failure(nil)),
        ]
        for index in indices { counters.count(index) }
        let conditions = counters.conditions.map { String(decoding: $0, as: UTF8.self) }
        let counted = reasons(counters)
        #expect(indices == [1, 2, 1, 3] && counted == ["policy.claim_missing": 4])
        #expect(conditions == ["", "authorize[0] a", "authorize[1] b?c", ""])
    }

    @Test func `have an index for each code, assigned on first use`() {
        var counters = ReasonCounters()
        let indices = [
            counters.index(of: "router.no_route"), counters.index(of: "policy.denied"),
            counters.index(of: "router.no_route"), counters.index(of: "auth.no_key"),
        ]
        let codes = counters.codes.map(\.rawValue)
        let texts = counters.texts.map { String(decoding: $0, as: UTF8.self) }
        let members = counters.members
        #expect(indices == [1, 2, 1, 3])
        #expect(codes == ["ok", "router.no_route", "policy.denied", "auth.no_key"])
        #expect(texts == codes)
        #expect(members == [[], [], [], []])
    }

    @Test func `report only codes that were counted`() {
        var counters = ReasonCounters()
        let denied = counters.index(of: "policy.denied")
        _ = counters.index(of: "auth.no_key")
        counters.count(denied)
        counters.count(denied)
        let counted = reasons(counters)
        #expect(counted == ["policy.denied": 2])
    }

    @Test func `are added to what the report has already`() {
        var counters = ReasonCounters()
        let denied = counters.index(of: "policy.denied")
        counters.count(denied)
        var report = LoopReport()
        report.reasons = ["policy.denied": 5, "auth.no_key": 1]
        counters.add(to: &report)
        let counted = report.reasons
        #expect(counted == ["policy.denied": 6, "auth.no_key": 1])
    }

    @Test func `keep the counts of a hundred codes apart`() {
        var counters = ReasonCounters()
        var expected: [String: Int] = [:]
        for number in 1...100 {
            let index = counters.index(of: ErrorCode(rawValue: "test.code_\(number)"))
            for _ in 0..<number { counters.count(index) }
            expected["test.code_\(number)"] = number
        }
        let counted = reasons(counters)
        #expect(counted == expected)
    }
}

@Suite struct `Reasons about a body member` {
    private static let code: ErrorCode = "sign_in.bad_body"

    private func failure(_ path: [String], _ code: ErrorCode = "sign_in.bad_body") -> Failure {
        .malformed(code, [BodyError(path, .missing)])
    }

    @Test func `have an index for each member, and one count for the code`() {
        var counters = ReasonCounters()
        let indices = [
            counters.index(of: failure(["name"])), counters.index(of: failure(["code"])),
            counters.index(of: failure(["name"])), counters.index(of: Self.code),
            counters.index(of: failure(["name"], "test.other")),
        ]
        for index in indices { counters.count(index) }
        let codes = counters.codes.map(\.rawValue)
        let members = counters.members.map { String(decoding: $0, as: UTF8.self) }
        var report = LoopReport()
        counters.add(to: &report)
        let counted = report.reasons
        #expect(indices == [1, 2, 1, 3, 4])
        #expect(codes == ["ok", "sign_in.bad_body", "sign_in.bad_body", "sign_in.bad_body", "test.other"])
        #expect(members == ["", "name", "code", "", "name"])
        #expect(counted == ["sign_in.bad_body": 4, "test.other": 1])
    }

    @Test func `are those of the first member`() {
        var counters = ReasonCounters()
        let errors = [BodyError("first", .missing), BodyError("second", .tooLong)]
        let index = counters.index(of: Failure.malformed(Self.code, errors))
        let again = counters.index(of: failure(["first"]))
        let members = counters.members.count
        #expect(index == 1 && again == 1 && members == 2)
    }

    @Test(arguments: [[], [""]] as [[String]])
    func `are those of the code where no member is named`(path: [String]) {
        var counters = ReasonCounters()
        let plain = counters.index(of: Self.code)
        let index = counters.index(of: failure(path))
        let withoutErrors = counters.index(of: Failure.malformed(Self.code))
        let count = counters.codes.count
        #expect(plain == 1 && index == 1 && withoutErrors == 1 && count == 2)
    }

    @Test(arguments: [
        (["a"], "a"), (["a", "b"], "a/b"), (["a/b", "c~d"], "a~1b/c~0d"), (["a b"], "a?b"), (["a\"b\\c"], "a?b?c"),
        (["\u{1F}!~\u{7F}"], "?!~0?"), (["\u{E9}"], "??"), (["", "a"], "/a"),
    ])
    func `have the member as bytes that need no escape`(path: [String], text: String) {
        var counters = ReasonCounters()
        let index = counters.index(of: failure(path))
        let member = String(decoding: counters.members[Int(index)], as: UTF8.self)
        #expect(member == text)
    }

    @Test(arguments: [(63, 63), (64, 64), (65, 64), (1000, 64)])
    func `have up to 64 bytes of the member`(length: Int, kept: Int) {
        var counters = ReasonCounters()
        let name = String(repeating: "a", count: length)
        let index = counters.index(of: failure([name]))
        let other = counters.index(of: failure([name + "b"]))
        let member = counters.members[Int(index)]
        #expect(member == [UInt8](repeating: 0x61, count: kept))
        #expect(other == index + 1)
    }

    @Test func `have no index of their own beyond 1024 members`() {
        var counters = ReasonCounters()
        var indices: [Int32] = []
        for number in 1...1024 { indices.append(counters.index(of: failure(["m\(number)"]))) }
        #expect(indices == Array(Int32(1)...1024))
        let beyond = [
            counters.index(of: failure(["m1025"])), counters.index(of: failure(["m1026"])),
            counters.index(of: failure(["m1"], "test.other")), counters.index(of: Self.code),
        ]
        let known = [counters.index(of: failure(["m1"])), counters.index(of: failure(["m1024"]))]
        let (codes, members) = (counters.codes.count, counters.members[1025])
        #expect(beyond == [1025, 1025, 1026, 1025])
        #expect(known == [1, 1024])
        #expect(codes == 1027 && members == [])
    }
}

@Suite struct `Counters of routes` {
    private func read(_ counters: borrowing RouteCounters) -> LoopReport {
        var report = LoopReport()
        counters.add(to: &report)
        return report
    }

    private func rows(_ report: LoopReport) -> [String] {
        report.requests.map { "\($0.route) \($0.status) \($0.count)" }
    }

    @Test func `begin with the slot of requests without a route`() {
        let counters = RouteCounters()
        let (names, texts, configured) = (counters.names, counters.texts, counters.configured.count)
        let report = read(counters)
        #expect(RouteSlot.noRoute.rawValue == 0)
        #expect(names == ["-"] && texts == [Array("-".utf8)] && configured == 0)
        #expect(report.requests.isEmpty && report.latency.isEmpty)
    }

    @Test func `have a slot for each name, which stays across configurations`() {
        var counters = RouteCounters()
        counters.assignSlots(toRoutes: ["a", "\u{E9}", "a"])
        let first = counters.configured.map(\.rawValue)
        counters.assignSlots(toRoutes: ["c", "\u{E9}"])
        let second = counters.configured.map(\.rawValue)
        counters.assignSlots(toRoutes: [])
        let third = counters.configured.map(\.rawValue)
        let (names, texts) = (counters.names, counters.texts)
        #expect(first == [1, 2, 1] && second == [3, 2] && third == [])
        #expect(names == ["-", "a", "\u{E9}", "c"])
        #expect(texts == names.map { Array($0.utf8) })
    }

    @Test func `report what a removed route counted`() {
        var counters = RouteCounters()
        counters.assignSlots(toRoutes: ["a", "b"])
        let route = counters.configured[0]
        counters.count(route, status: 200, microseconds: 7)
        counters.assignSlots(toRoutes: ["b"])
        counters.count(route, status: 204, microseconds: 8)
        let report = read(counters)
        #expect(rows(report) == ["a 200 1", "a 204 1"])
        #expect(report.latency.count == 1 && report.latency.first?.route == "a")
        #expect(report.latency.first?.sumMicroseconds == 15)
    }

    @Test(arguments: [
        (0, 0), (100, 0), (101, 1), (250, 1), (251, 2), (1000, 3), (1001, 4), (10_000_000, 15), (10_000_001, 16),
        (Int.max, 16),
    ])
    func `have the duration in the first bucket that it does not exceed`(microseconds: Int, bucket: Int) {
        var counters = RouteCounters()
        counters.count(.noRoute, status: 200, microseconds: microseconds)
        let report = read(counters)
        var expected = [Int](repeating: 0, count: 17)
        expected[bucket] = 1
        #expect(report.latency.first?.buckets == expected)
        #expect(report.latency.first?.sumMicroseconds == microseconds)
    }

    @Test func `are reported by route and status in ascending order`() {
        var counters = RouteCounters()
        counters.assignSlots(toRoutes: ["b", "a"])
        let slots = counters.configured
        for status in [503, 200, 404, 200] { counters.count(slots[1], status: status, microseconds: 1) }
        counters.count(slots[0], status: 599, microseconds: 1)
        counters.count(.noRoute, status: 0, microseconds: 1)
        let report = read(counters)
        #expect(rows(report) == ["- 0 1", "b 599 1", "a 200 2", "a 404 1", "a 503 1"])
    }

    @Test func `follow what the report has already`() {
        var counters = RouteCounters()
        counters.count(.noRoute, status: 404, microseconds: 3)
        var report = LoopReport()
        report.requests = [LoopReport.Requests(route: "-", status: 404, count: 9)]
        counters.add(to: &report)
        counters.add(to: &report)
        let sums = report.latency.map { $0.sumMicroseconds }
        #expect(rows(report) == ["- 404 9", "- 404 1", "- 404 1"])
        #expect(sums == [3, 3])
    }

    @Test func `keep fifty routes apart`() {
        var counters = RouteCounters()
        let names = (1...50).map { "route-\($0)" }
        counters.assignSlots(toRoutes: names)
        let slots = counters.configured
        for (index, slot) in slots.enumerated() {
            for _ in 0...index { counters.count(slot, status: 200 + index, microseconds: 1000) }
        }
        let report = read(counters)
        let sums = report.latency.map { $0.sumMicroseconds }
        let counts = report.latency.map { $0.buckets[3] }
        #expect(rows(report) == (1...50).map { "route-\($0) \(199 + $0) \($0)" })
        #expect(sums == (1...50).map { $0 * 1000 })
        #expect(counts == Array(1...50))
    }
}
