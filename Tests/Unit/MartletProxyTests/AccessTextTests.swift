import MartletConfig
import MartletCore
import Synchronization
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct AccessKeyTests {
    private func key(
        route: Int32 = 1, endpoint: Int32 = 2, status: Int = 200, reason: Int32 = 3, provider: Int32 = 4,
        isCheck: Bool = false
    ) -> AccessKey {
        AccessKey(
            route: route, endpoint: endpoint, status: status, reason: reason, provider: provider, isCheck: isCheck)
    }

    @Test func `two keys are equal only if all their indices are`() {
        let others = [
            key(route: 2), key(endpoint: 1), key(status: 201), key(reason: 4), key(provider: 3), key(isCheck: true),
            key(route: -1), key(endpoint: -1), key(provider: -1), key(route: 2, endpoint: 1),
            key(reason: 4, provider: 3), key(status: 3, reason: 200), key(status: 4, isCheck: true),
        ]
        #expect(key() == key())
        for (index, other) in others.enumerated() {
            #expect(other != key(), "key \(index)")
            for later in others[(index + 1)...] { #expect(other != later, "key \(index)") }
        }
    }

    @Test func `a key has one of 64 slots`() {
        var used: Set<Int> = []
        for number in Int32(-1)..<2000 {
            let one = key(route: number, endpoint: number % 7, status: Int(number), reason: number % 3)
            #expect((0..<64).contains(one.slot))
            used.insert(one.slot)
        }
        #expect(used.count == 64)
    }

    @Test func `extreme indices have a slot, too`() {
        for number in [Int32.min, -1, 0, .max] {
            let one = key(
                route: number, endpoint: number, reason: number, provider: number)
            #expect((0..<64).contains(one.slot))
        }
    }
}

/// What lines with one key share.
@Suite struct AccessTemplateTests {
    private func line(
        route: String = "api", status: Int = 200, reason: String = "ok", member: String = "",
        provider: String = "apple", upstream: String = "http://u"
    ) -> PlainAccessLine {
        PlainAccessLine(
            route: route, status: status, reason: reason, member: member, provider: provider, upstream: upstream)
    }

    @Test func `texts of a JSON line stand between the path and the first number`() {
        let plain = AccessLineBench.text(line(), .json)
        #expect(
            plain.contains(
                #""path":"/v1/x","route":"api","status":200,"reason":"ok","provider":"apple","#
                    + #""upstream":"http://u","bytes_in":5,"#))
        let member = line(reason: "request.body_invalid", member: "email", provider: "", upstream: "")
        #expect(
            AccessLineBench.text(member, .json).contains(
                #""path":"/v1/x","route":"api","status":200,"reason":"request.body_invalid","member":"email","#
                    + #""provider":"","upstream":"","bytes_in":5,"#))
    }

    @Test func `texts of a line as text have no provider`() {
        #expect(
            AccessLineBench.text(line(status: 503), .text).contains("/v1/x 503 ok route=api upstream=http://u 789us"))
        let member = line(route: "-", status: 503, reason: "a.b", member: "c", upstream: "")
        #expect(
            AccessLineBench.text(member, .text).contains("/v1/x 503 a.b member=c route=- upstream= 789us"))
    }

    @Test func `nothing is cached at first`() {
        let bench = AccessLineBench(.json)
        for number in Int32(-1)..<200 {
            let isCached = bench.isPrepared(for: AccessLineBench.key(route: number))
            #expect(!isCached)
        }
    }

    @Test func `a key replaces the one in its slot, and no other`() throws {
        let first = AccessLineBench.key(route: 0)
        let keys = (Int32(1)...).lazy.map { AccessLineBench.key(route: $0) }
        let (second, other) = try (
            #require(keys.first { $0.slot == first.slot }), #require(keys.first { $0.slot != first.slot })
        )
        var bench = AccessLineBench(.text)
        func isCached(_ bench: borrowing AccessLineBench) -> [Bool] {
            [first, second, other].map { bench.isPrepared(for: $0) }
        }
        bench.write(line(route: "first"), first)
        bench.write(line(route: "other"), other)
        let before = isCached(bench)
        bench.write(line(route: "second"), second)
        bench.write(line(route: "kept"), second)
        bench.write(line(route: "kept"), other)
        let after = isCached(bench)
        let routes = bench.text.split(separator: "\n").map { $0.split(separator: " ").first { $0.hasPrefix("route=") } }
        #expect(before == [true, false, true] && after == [false, true, true])
        #expect(routes == ["route=first", "route=other", "route=second", "route=second", "route=other"])
    }

    @Test(arguments: [[AccessField.time, .route], [.route, .time], [.event, .time, .route, .timeMilliseconds]])
    func `every second has its own time`(_ fields: [AccessField]) {
        for format in [AccessFormat.json, .text] {
            var bench = AccessLineBench(format, fields)
            var expected = ""
            for second in [1, 1, 2, 2, 1, 1_700_000_000] {
                let line = PlainAccessLine(milliseconds: Int64(second) * 1000 + 999)
                bench.write(line)
                expected += format == .json ? line.json(fields) : line.text(fields)
            }
            let text = bench.text
            #expect(text == expected)
        }
    }

    @Test func `what one line lacks is in the next one`() {
        var bench = AccessLineBench(.json, [.subject, .status, .traceID])
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736"
        bench.write(PlainAccessLine())
        bench.write(PlainAccessLine(caller: ("u1", ""), trace: trace))
        bench.write(PlainAccessLine(caller: ("u2", "s")))
        let text = bench.text
        #expect(
            text == "{\"status\":200}\n{\"subject\":\"u1\",\"status\":200,\"trace_id\":\"\(trace)\"}\n"
                + "{\"subject\":\"u2\",\"status\":200}\n")
    }
}

@Suite struct AccessLogBatchTests {
    private final class Sink: AccessLogging {
        let format = AccessFormat.text
        private let batches = Mutex<[Int]>([])

        /// The length of each batch.
        var sizes: [Int] { batches.withLock { $0 } }

        func take(_ lines: inout ByteBuffer) {
            let count = lines.count
            lines.removeAll()
            batches.withLock { $0.append(count) }
        }
    }

    /// Writes a record whose path has so many bytes.
    private func write(_ count: Int, to writer: inout AccessLogWriter) {
        let path = [UInt8](repeating: 0x61, count: count)
        let text = Array("x".utf8)
        var request = RequestTexts()
        let client = AddressText("unix".utf8)
        unsafe text.withUnsafeBufferPointer { text in
            unsafe request.begin(requestID: text, client: client)
            unsafe request.add(method: text, host: text)
        }
        unsafe path.withUnsafeBufferPointer { unsafe request.set(path: $0) }
        let key = AccessLineBench.key()
        if !writer.isPrepared(for: key, at: key.slot) {
            writer.facts.status = 200
            writer.facts.route = Array("r".utf8)
            writer.facts.reason = Array("ok".utf8)
            writer.prepare(key, &request)
        }
        writer.facts.unixTime = 1
        writer.append(&request, at: key.slot)
    }

    /// What a line has besides its path: "1 unix x x", " 200 ok route=r upstream= ", "0us id=x" and a line feed.
    private static let overhead = 10 + 26 + 9

    @Test func `a batch is handed over when the loop is idle, or fifty milliseconds after the last one`() {
        let sink = Sink()
        var writer = AccessLogWriter(sink)
        let times: [(now: Int64, isIdle: Bool, handedOver: Int)] = [
            (0, false, 0), (49_999_999, false, 0), (50_000_000, false, 1), (99_999_999, false, 1),
            (100_000_000, false, 2), (100_000_001, true, 3), (150_000_000, false, 3), (150_000_001, false, 4),
        ]
        for row in times {
            write(1, to: &writer)
            writer.flush(now: row.now, isIdle: row.isIdle)
            #expect(sink.sizes.count == row.handedOver, "at \(row.now)")
        }
        let lengths = sink.sizes.map { $0 / (Self.overhead + 1) }
        #expect(lengths == [3, 2, 1, 2] && sink.sizes.reduce(0, +) == 8 * (Self.overhead + 1))
        let isEmpty = writer.isEmpty
        #expect(isEmpty)
    }

    @Test func `an empty batch is not handed over`() {
        let sink = Sink()
        var writer = AccessLogWriter(sink)
        writer.flush(now: 1_000_000_000, isIdle: true)
        #expect(sink.sizes == [])
        // It does not count as the last one either.
        write(1, to: &writer)
        writer.flush(now: 1_000_000_001, isIdle: false)
        #expect(sink.sizes.count == 1)
    }

    @Test(arguments: [(64 * 1024 - 1, 0), (64 * 1024, 1), (64 * 1024 + 1, 1)])
    func `a batch of 64 KiB is handed over immediately`(_ length: Int, _ batches: Int) {
        let sink = Sink()
        var writer = AccessLogWriter(sink)
        write(length - Self.overhead, to: &writer)
        writer.flush(now: 0, isIdle: false)
        #expect(sink.sizes == (batches == 0 ? [] : [length]))
    }

    @Test func `a key has to be prepared again after a new configuration or format`() {
        var writer = AccessLogWriter(Sink())
        write(1, to: &writer)
        let key = AccessLineBench.key()
        let isPrepared = { (writer: borrowing AccessLogWriter) in writer.isPrepared(for: key, at: key.slot) }
        let first = isPrepared(writer)
        writer.reset()
        let afterFormat = isPrepared(writer)
        write(1, to: &writer)
        let second = isPrepared(writer)
        writer.adopt(.standard)
        let afterPlan = isPrepared(writer)
        #expect(first && !afterFormat && second && !afterPlan)
    }
}
