import MartletConfig
import MartletCore
import MartletHTTP
import MartletTesting
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct AccessPlanTests {
    private func plan(_ change: (inout AccessLogConfiguration) -> Void) -> AccessPlan {
        var configuration = AccessLogConfiguration()
        change(&configuration)
        return AccessPlan(configuration)
    }

    private func fields(_ plan: AccessPlan) -> [AccessField] { plan.columns(.json).map(\.field) }

    @Test func `the default selects nothing, a file neither`() {
        let location = SourceLocation(file: "config.yaml", line: 1, column: 1)
        let plans = [
            plan { _ in }, plan { $0.file = Located(FilePath("access.log"), at: location) },
            plan { $0.fields = AccessField.standard }, AccessPlan.standard,
        ]
        #expect(plans.map(\.isSelective) == [false, false, false, false])
        let others = [
            plan { $0.fields = [.status] }, plan { $0.logsProbes = false },
            plan { $0.sample = SamplePercentage(millionths: 999_999) },
        ]
        #expect(others.map(\.isSelective) == [true, true, true])
    }

    @Test(
        arguments: [
            (10_000, "100"), (1_000_000, "1"), (500_000, "2"), (300_000, "3.3333"), (1, "1000000"), (0, "0"),
            (999_999, "1"), (700_000, "1.4286"),
        ] as [(Int, String)])
    func `a sampled line stands for the reciprocal of its share`(millionths: Int, weight: String) {
        let plan = plan { $0.sample = SamplePercentage(millionths: millionths) }
        var numbers = SampleNumbers(seed: 0)
        // A hundred thousand lines: of the smallest share there may be none.
        let weights = Set((0..<100_000).compactMap { _ in self.weight(Row(status: 200, atNone: nil), &numbers, plan) })
        #expect(weights.isSubset(of: [weight]) && (weights.count == 1 || millionths < 100))
        #expect(fields(plan).last == (millionths == 1_000_000 ? .duration : .weight))
    }

    @Test func `the weight is where the fields have it, and is there once`() {
        let plan = plan {
            $0.sample = SamplePercentage(millionths: 10_000)
            $0.fields = [.weight, .status]
        }
        #expect(fields(plan) == [.weight, .status])
    }

    @Test func `notes are kept for what is gone when a request ends, and for nothing else`() {
        for field in AccessField.allCases {
            let plan = plan { $0.fields = [field] }
            let needs: Set<AccessField> = [.userAgent, .referer, .upstreamStatus, .upstreamTime]
            #expect(plan.needsNotes == needs.contains(field), "\(field)")
            #expect(plan.notesResponses == [.upstreamStatus, .upstreamTime].contains(field), "\(field)")
        }
    }

    // MARK: Sampling

    private struct Row {
        let status: Int
        var isRejected = false
        var isProbe = false
        /// What a line stands for, where all that may be dropped are.
        let atNone: String?
        var withoutProbes: String? = "1"
    }

    private func weight(_ row: Row, _ numbers: inout SampleNumbers, _ plan: AccessPlan) -> String? {
        plan.weight(status: row.status, isRejected: row.isRejected, isProbe: row.isProbe, random: { numbers.next() })
            .map { String(decoding: $0, as: UTF8.self) }
    }

    @Test func `rejections and failures are never dropped`() {
        let rows = [
            Row(status: 200, atNone: nil), Row(status: 304, atNone: nil), Row(status: 404, atNone: nil),
            Row(status: 401, isRejected: true, atNone: "1"), Row(status: 200, isRejected: true, atNone: "1"),
            Row(status: 500, atNone: "1"), Row(status: 599, atNone: "1"), Row(status: 499, atNone: nil),
            Row(status: 200, isProbe: true, atNone: nil, withoutProbes: nil),
            Row(status: 503, isProbe: true, atNone: "1"),
            Row(status: 404, isRejected: true, isProbe: true, atNone: "1"),
        ]
        let none = plan { $0.sample = SamplePercentage(millionths: 0) }
        let probes = plan { $0.logsProbes = false }
        var numbers = SampleNumbers(seed: 1)
        for row in rows {
            for _ in 0..<20 {
                let weights = (weight(row, &numbers, none), weight(row, &numbers, probes))
                #expect(weights.0 == row.atNone && weights.1 == row.withoutProbes, "\(row)")
                let standard = weight(row, &numbers, .standard)
                #expect(standard == "1", "\(row)")
            }
        }
    }

    @Test(arguments: [(10_000, "100"), (250_000, "4"), (990_000, "1.0101")])
    func `the share is what was asked for`(millionths: Int, expected: String) {
        let plan = plan { $0.sample = SamplePercentage(millionths: millionths) }
        var numbers = SampleNumbers(seed: 42)
        var written = 0
        let count = 200_000
        for _ in 0..<count {
            guard let weight = weight(Row(status: 200, atNone: nil), &numbers, plan) else { continue }
            if weight == expected { written += 1 }
        }
        let share = Double(written) / Double(count)
        #expect(abs(share - Double(millionths) / 1_000_000) < 0.005)
    }
}

@Suite struct SelectedLineTests {
    private static let line = PlainAccessLine(
        instanceID: "host-1", requestID: "id1", path: "/a", provider: "", upstream: "", bytesIn: 5, bytesOut: 7,
        microseconds: 42)

    private func write(
        _ fields: [AccessField], _ format: AccessFormat = .json, _ change: (inout PlainAccessLine) -> Void = { _ in }
    ) -> String {
        var line = Self.line
        change(&line)
        return AccessLineBench.text(line, format, fields)
    }

    @Test func `a line has the fields in their order`() {
        #expect(
            write([.status, .method, .timestamp, .timeMilliseconds, .time, .level])
                == #"{"status":200,"method":"GET","timestamp":"2023-11-14T22:13:20.123Z","time_ms":1700000000123,"#
                + #""time":1700000000,"level":"info"}"# + "\n")
    }

    @Test func `what a request does not have is left out, at the beginning and the end too`() {
        let fields: [AccessField] = [.userAgent, .status, .tlsVersion, .condition, .bytesOut, .upstreamStatus]
        #expect(write(fields) == "{\"status\":200,\"bytes_out\":7}\n")
        #expect(write([.userAgent]) == "{}\n")
        #expect(write(fields, .text) == "status=200 bytes_out=7\n")
        #expect(write([.userAgent, .condition], .text) == "\n")
    }

    @Test func `every field has a value of its own type`() {
        let numbers: Set<AccessField> = [
            .time, .timeMilliseconds, .status, .bytesIn, .bytesOut, .duration, .retries, .weight,
        ]
        let absent: Set<AccessField> = [.userAgent, .referer, .upstreamStatus, .upstreamTime]
        func full(_ line: inout PlainAccessLine) {
            line.isCheck = true
            line.tlsVersion = "TLSv1.3"
            line.member = "nonce"
            line.condition = "auth max_age"
            line.provider = "apple"
            line.upstream = "http://127.0.0.1:9000"
            line.caller = ("u1", "s1")
            line.trace = Self.trace
        }
        for field in AccessField.allCases where !absent.contains(field) {
            let text = write([field], .json, full)
            let isText = text.hasPrefix("{\"\(field.rawValue)\":\"") && text.hasSuffix("\"}\n")
            #expect(text.hasPrefix("{\"\(field.rawValue)\":"), "\(text)")
            #expect(isText == !(numbers.contains(field) || field == .check), "\(text)")
        }
        #expect(
            write([.subject, .sessionID], .json, full) == "{\"subject\":\"u1\",\"session_id\":\"s1\"}\n")
    }

    private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"

    @Test func `the trace of a sampled request is a field like any other`() {
        let fields: [AccessField] = [.traceID, .subject, .sessionID]
        func name(_ line: inout PlainAccessLine) { line.caller = ("u1", "s1") }
        func trace(_ line: inout PlainAccessLine) { line.trace = Self.trace }
        #expect(
            write(fields) {
                name(&$0)
                trace(&$0)
            } == "{\"trace_id\":\"\(Self.trace)\",\"subject\":\"u1\",\"session_id\":\"s1\"}\n")
        #expect(write(fields, .json, trace) == "{\"trace_id\":\"\(Self.trace)\"}\n")
        #expect(write(fields, .json, name) == "{\"subject\":\"u1\",\"session_id\":\"s1\"}\n")
        #expect(write([.traceID], .text, trace) == "trace_id=\(Self.trace)\n")
        var sampled = AccessLogConfiguration()
        sampled.sample = SamplePercentage(millionths: 10_000)
        #expect(AccessPlan(sampled).columns(.text).contains { $0.field == .traceID })
    }

    @Test func `paths are escaped, and texts with spaces are quoted as text`() {
        #expect(write([.path]) { $0.path = "/a\"b\\\u{1}" } == #"{"path":"/a\"b\\?"}"# + "\n")
        #expect(
            write([.condition, .path], .text) { $0.condition = "auth max_age" }
                == "condition=\"auth max_age\" path=/a\n")
    }

    @Test func `the default fields and one more make the line of the default and one more`() {
        let expected =
            #"{"time":1700000000,"event":"request","instance_id":"host-1","request_id":"id1","client":"192.0.2.1","#
            + #""method":"GET","host":"example.com","path":"/a","subject":"u1","session_id":"","route":"api","#
            + #""status":200,"reason":"ok","provider":"","upstream":"","bytes_in":5,"bytes_out":7,"duration_us":42,"#
            + #""weight":1}"# + "\n"
        var line = Self.line
        line.caller = ("u1", "")
        #expect(AccessLineBench.text(line, .json, AccessField.standard + [.weight]) == expected)
        #expect(AccessLineBench.text(line, .json) == expected.replacing(",\"weight\":1", with: ""))
    }

    // MARK: Notes

    @Test func `notes have what a head says, and no query`() {
        let agent = "curl/8 \"quoted\" \\ \u{E9}" + String(repeating: "x", count: 400)
        let text =
            "GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: \(agent)\r\n"
            + "Referer: https://user:secret@b.example/p?token=secret\r\n\r\n"
        var head = RequestHead(maximumFields: 20)
        var parser = RequestParser(maximumHeadBytes: 4096)
        let bytes = Array(text.utf8)
        let notes = unsafe bytes.withUnsafeBufferPointer { bytes in
            _ = unsafe parser.parse(bytes.span, into: &head)
            return unsafe AccessNotes(head, bytes)
        }
        let found = String(decoding: notes.userAgent, as: UTF8.self)
        #expect(found.hasPrefix(#"curl/8 \"quoted\" \\ ??xxx"#) && found.utf8.count == 256 + 3)
        #expect(String(decoding: notes.referer, as: UTF8.self) == "b.example/p")
        #expect(notes.status == 0)
        var facts = AccessFacts()
        facts.notes = notes
        var line = ByteBuffer()
        var request = RequestTexts()
        for field in [AccessField.userAgent, .referer, .upstreamStatus] { _ = line.append(field, &facts, &request) }
        let written = String(decoding: line.array, as: UTF8.self)
        #expect(written == found + "b.example/p")
    }

    @Test func `an exchange has no notes of the one before it`() {
        var record = ExchangeRecord()
        record.begin(now: 0)
        record.notes = AccessNotes()
        record.notes?.status = 201
        record.end()
        record.begin(now: 1)
        let notes = record.notes
        #expect(notes == nil)
    }
}
