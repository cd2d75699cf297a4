import MartletCore
import MartletJSON
import MartletTesting
import MartletTracing
import Testing

/// The queue of spans, the documents made of them, and when these are sent.
@Suite struct `The export of spans` {
    static func trace(_ number: UInt64, spans count: Int = 1, text: String = "x") -> FinishedTrace {
        let spans = (0..<count).map { index in
            TraceSpan(
                id: SpanID(number << 8 | UInt64(index + 1)), parent: index > 0 ? SpanID(number << 8 | 1) : nil,
                name: "GET open", kind: index > 0 ? .client : .server, start: 1000, end: 2500,
                attributes: [SpanAttribute("url.path", text), SpanAttribute("http.response.status_code", 200)])
        }
        return FinishedTrace(
            trace: TraceID(high: 1, low: number), state: [], spans: spans, clockOffset: 1_700_000_000_000_000_000)
    }

    @Test func `the queue is bounded by number and by bytes, and gives the oldest first`() {
        var queue = SpanQueue(capacity: .init(spans: 10, bytes: 1 << 20))
        let added = [6, 4, 1].enumerated().map { queue.add(Self.trace(UInt64($0.offset + 1), spans: $0.element)) }
        #expect(added == [true, true, false])
        let taken = queue.take().map(\.trace.low)
        #expect(taken == [1, 2] && queue.isEmpty)
        let hasRoom = queue.add(Self.trace(4))
        let removed = queue.removeAll()
        #expect(hasRoom && removed == 1 && queue.isEmpty)
        var small = SpanQueue(capacity: .init(spans: 1000, bytes: 2000))
        let isTaken = small.add(Self.trace(1, text: String(repeating: "x", count: 2000)))
        #expect(!isTaken && small.isEmpty)
    }

    @Test func `a batch has at most 512 spans, but always a whole request`() {
        var queue = SpanQueue()
        for number in 0..<300 as Range<UInt64> { _ = queue.add(Self.trace(number, spans: 3)) }
        #expect(queue.isFull)
        let batches = (0..<3).map { _ in queue.take().reduce(0) { $0 + $1.spans.count } }
        #expect(batches == [510, 390, 0])
        _ = queue.add(Self.trace(1, spans: 600))
        let last = queue.take().count
        #expect(last == 1)
    }

    /// Bytes of every value at every position of texts of several lengths; what needs no escape is written without a parser.
    @Test func `texts are escaped as everywhere`() {
        func document(_ text: String) -> String {
            let bytes = TraceDocument.bytes(of: [Self.trace(5, text: text)], from: .init(version: "1", instance: "i"))
            return String(decoding: bytes, as: UTF8.self)
        }
        let template = document("TEXT")
        for length in [0, 1, 2, 7, 8, 9, 15, 16, 17, 23, 40] {
            for position in 0..<max(length, 1) {
                for scalar in Array(0...0x82).compactMap({ Unicode.Scalar($0 as Int) }) + ["\u{FFFD}", "\u{10FFFF}"] {
                    guard position == 0 || position == length - 1 || scalar.value % 3 == 0 || !scalar.isASCII else {
                        continue
                    }
                    var text = String(repeating: "~", count: position)
                    if length > 0 { text.unicodeScalars.append(scalar) }
                    text += String(repeating: " ", count: max(length - position - 1, 0))
                    let written = String(decoding: JSON.write(.string(text)), as: UTF8.self)
                    #expect(document(text) == template.replacing("\"TEXT\"", with: written))
                }
            }
        }
    }

    @Test func `the document is what OTLP says, with 64-bit numbers as texts`() throws {
        let text = "/a\"\\\n\u{7F}é"
        let bytes = TraceDocument.bytes(
            of: [Self.trace(5, spans: 2, text: text)], from: .init(version: "1.2", instance: "edge-1"))
        let document = try JSON.parse(bytes, limits: JSONLimits(maximumDepth: 16, maximumBytes: 1 << 20))
        let resource = try #require(document.object?["resourceSpans"]?.array?.first?.object)
        let names = resource["resource"]?.object?["attributes"]?.array?.compactMap { $0.object?["key"]?.string }
        #expect(names == ["service.name", "service.version", "service.instance.id"])
        let scope = try #require(resource["scopeSpans"]?.array?.first?.object)
        #expect(scope["scope"]?.object?["name"]?.string == "martlet")
        let found = scope["spans"]?.array?.compactMap(\.object)
        let spans = try #require(found)
        #expect(spans.count == 2)
        #expect(spans[0]["traceId"]?.string == "00000000000000010000000000000005")
        #expect(spans[0]["spanId"]?.string == "0000000000000501" && spans[0]["parentSpanId"] == nil)
        #expect(spans[1]["parentSpanId"]?.string == "0000000000000501")
        #expect(spans[0]["kind"] == .integer(2) && spans[1]["kind"] == .integer(3))
        #expect(spans[0]["startTimeUnixNano"]?.string == "1700000000000001000")
        #expect(spans[0]["endTimeUnixNano"]?.string == "1700000000000002500")
        let members = spans[0]["attributes"]?.array?.compactMap(\.object)
        let attributes = try #require(members)
        #expect(attributes[0]["value"]?.object?["stringValue"]?.string == text)
        #expect(attributes[1]["value"]?.object?["intValue"]?.string == "200")
    }

    @Test func `only the response of a collector is one`() {
        func result(_ status: Int, _ body: String, after: Duration? = nil) -> ExportResult {
            ExportResult(status: status, body: Array(body.utf8), retryAfter: after)
        }
        #expect(result(200, "{}") == .accepted(rejected: 0) && result(200, "") == .accepted(rejected: 0))
        #expect(result(200, #"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"x"}}"#) == .accepted(rejected: 3))
        #expect(result(200, #"{"partialSuccess":{"rejectedSpans":3}}"#) == .accepted(rejected: 3))
        #expect(result(200, #"{"partialSuccess":{"rejectedSpans":"-3"}}"#) == .accepted(rejected: 0))
        for html in ["<html></html>", "ok", "[]", "{"] {
            guard case .rejected = result(200, html) else {
                Issue.record("\(html)")
                continue
            }
        }
        for status in [400, 401, 404, 413, 301, 500, 501] {
            guard case .rejected = result(status, "") else {
                Issue.record("\(status)")
                continue
            }
        }
        #expect(result(503, "", after: .seconds(7)) == .unavailable("status 503", after: .seconds(7)))
        for status in [429, 502, 504] { #expect(result(status, "<p>") == .unavailable("status \(status)", after: nil)) }
    }

    private func at(_ milliseconds: Int64) -> MonotonicTime { MonotonicTime(nanoseconds: milliseconds * 1_000_000) }

    @Test func `spans wait for a second or a whole document, and for the document before them`() {
        var schedule = ExportSchedule()
        #expect(schedule.next(at: at(0), isFull: false, isStopping: false) == .wait(until: .never))
        schedule.added(at: at(0))
        schedule.added(at: at(900))
        #expect(schedule.next(at: at(900), isFull: false, isStopping: false) == .wait(until: at(1000)))
        #expect(schedule.next(at: at(900), isFull: true, isStopping: false) == .send)
        #expect(schedule.next(at: at(900), isFull: false, isStopping: true) == .send)
        #expect(schedule.next(at: at(1000), isFull: false, isStopping: false) == .send)
        schedule.began(leaves: false, at: at(1000))
        schedule.added(at: at(1001))
        #expect(schedule.next(at: at(9000), isFull: true, isStopping: true) == .wait(until: .never))
        let outcome = schedule.ended(.accepted(rejected: 2), at: at(9000), random: 0)
        #expect(outcome == .done(lost: 2))
        #expect(schedule.next(at: at(9000), isFull: false, isStopping: false) == .send)
    }

    @Test func `a document that cannot be taken is sent five times, after growing pauses, and given up`() {
        var schedule = ExportSchedule()
        schedule.added(at: at(0))
        var (now, pauses): (Int64, [Int64]) = (1000, [])
        for attempt in 1...5 {
            schedule.began(leaves: true, at: at(now))
            let outcome = schedule.ended(.unavailable("x", after: nil), at: at(now), random: 1)
            #expect(outcome == (attempt < 5 ? .again : .drop(.unavailable)))
            guard case .wait(let until) = schedule.next(at: at(now), isFull: true, isStopping: true) else {
                Issue.record("it does not wait")
                return
            }
            pauses.append(until.since(at(now)).wholeMilliseconds)
            now += pauses.last ?? 0
            #expect(
                schedule.next(at: at(now), isFull: true, isStopping: false) == (attempt < 5 ? .sendAgain : .send))
        }
        #expect(pauses == [500, 1000, 2000, 4000, 8000])
    }

    @Test func `a collector says how long to wait, up to half a minute`() {
        for (asked, waits) in [(2, 2000), (9999, 30_000)] as [(Int, Int64)] {
            var schedule = ExportSchedule()
            schedule.began(leaves: false, at: at(0))
            let first = schedule.ended(.unavailable("x", after: .seconds(asked)), at: at(0), random: 0)
            #expect(first == .again)
            #expect(schedule.next(at: at(0), isFull: true, isStopping: false) == .wait(until: at(waits)))
            let second = schedule.ended(.rejected("x"), at: at(0), random: 0)
            #expect(second == .drop(.rejected))
        }
    }

    // MARK: Over the network

    private func exporter(
        _ url: String, _ fields: [(name: String, value: Secret)] = [], timeout: Duration = .seconds(10)
    )
        throws -> TraceExporter
    {
        let exporter = TraceExporter(
            .init(version: "1", instance: "i"), clock: .system, logger: .silent)
        var target = ExportTarget(url: url, fields: fields)
        target.timeout = timeout
        try exporter.follow(target)
        return exporter
    }

    @Test func `the exporter posts JSON with its fields, flushes at the end, and reads partial success`() async throws {
        let server = try ScriptedUpstream {
            try $0.respond(200, body: #"{"partialSuccess":{"rejectedSpans":"1"}}"#)
        }
        let exporter = try exporter("\(server.url)/v1/traces", [("X-Key", Secret("word"))])
        exporter.take([Self.trace(1, spans: 3)])
        await exporter.stop(within: .seconds(2))
        let request = try server.onlyRequest()
        #expect(request.method == "POST" && request.target == "/v1/traces" && request["X-Key"] == "word")
        #expect(request["Content-Type"] == "application/json" && request["Expect"] == nil)
        #expect(exporter.counts.sent == 2 && exporter.counts.lost == [.rejected: 1])
        exporter.take([Self.trace(2)])
        #expect(exporter.counts.lost == [.rejected: 1, .shutdown: 1])
    }

    @Test func `a collector that hangs holds up the end for its time, and what is left is counted`() async throws {
        let server = try ScriptedUpstream { _ = $0.waitForEnd() }
        let exporter = try exporter("\(server.url)/v1/traces")
        exporter.take([Self.trace(1, spans: 3)])
        await exporter.stop(within: .milliseconds(300))
        #expect(exporter.counts.sent == 0 && exporter.counts.lost == [.shutdown: 3])
        server.stop()
    }

    @Test func `more than fits is dropped, and a document that is not taken is sent again`() async throws {
        let count = Box(0)
        let server = try ScriptedUpstream { exchange in
            let isFirst = count.withLock { count in
                count += 1
                return count == 1
            }
            try exchange.respond(isFirst ? 503 : 200, isFirst ? [("Retry-After", "0")] : [], body: isFirst ? "" : "{}")
        }
        let exporter = try exporter("\(server.url)/v1/traces")
        exporter.take((0..<400).map { Self.trace(UInt64($0), spans: 50) })
        let lost = exporter.counts.lost[.queueFull] ?? 0
        #expect(lost >= 20_000 - SpanQueue.capacity.spans - 512 && lost % 50 == 0)
        try waitUntil("all are sent", within: .seconds(20)) { exporter.counts.sent == 20_000 - lost }
        await exporter.stop(within: .seconds(2))
        #expect(exporter.counts.lost == [.queueFull: lost])
    }
}
