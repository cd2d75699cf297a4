import MartletConfig
import MartletCore
import MartletHTTP
import MartletTesting
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct AccessPlanTests {
    private func plan(_ change: (inout AccessLogConfiguration) -> Void) -> AccessPlan? {
        var configuration = AccessLogConfiguration()
        change(&configuration)
        return AccessPlan(configuration)
    }

    @Test func `the default needs no plan, a file neither`() {
        #expect(plan { _ in } == nil)
        let location = SourceLocation(file: "config.yaml", line: 1, column: 1)
        #expect(plan { $0.file = Located(FilePath("access.log"), at: location) } == nil)
        #expect(plan { $0.fields = AccessField.standard } == nil)
        #expect(plan { $0.fields = [.status] } != nil)
        #expect(plan { $0.logsProbes = false } != nil)
    }

    @Test(
        arguments: [
            (10_000, "100"), (1_000_000, nil), (500_000, "2"), (300_000, "3.3333"), (1, "1000000"), (0, "0"),
            (999_999, "1"), (700_000, "1.4286"),
        ] as [(Int, String?)])
    func `a sampled line stands for the reciprocal of its share`(millionths: Int, weight: String?) {
        let plan = plan { $0.sample = SamplePercentage(millionths: millionths) }
        #expect(plan.map { String(decoding: $0.weight, as: UTF8.self) } == weight)
        #expect(plan?.fields.last == (weight == nil ? nil : .weight))
    }

    @Test func `the weight is where the fields have it, and is there once`() {
        let plan = plan {
            $0.sample = SamplePercentage(millionths: 10_000)
            $0.fields = [.weight, .status]
        }
        #expect(plan?.fields == [.weight, .status])
    }

    @Test func `notes are kept for what is gone when a request ends, and for nothing else`() {
        for field in AccessField.allCases {
            let plan = plan { $0.fields = [field] }
            let needs: Set<AccessField> = [.userAgent, .referer, .upstreamStatus, .upstreamTime]
            #expect(plan?.needsNotes == needs.contains(field), "\(field)")
            #expect(plan?.notesResponses == [.upstreamStatus, .upstreamTime].contains(field), "\(field)")
        }
    }

    // MARK: Sampling

    private struct Row {
        let status: Int
        var isRejected = false
        var isProbe = false
        let atNone: AccessSampling.Decision
        var withoutProbes = AccessSampling.Decision.write
    }

    @Test func `rejections and failures are never dropped`() throws {
        let rows = [
            Row(status: 200, atNone: .drop), Row(status: 304, atNone: .drop), Row(status: 404, atNone: .drop),
            Row(status: 401, isRejected: true, atNone: .write), Row(status: 200, isRejected: true, atNone: .write),
            Row(status: 500, atNone: .write), Row(status: 599, atNone: .write), Row(status: 499, atNone: .drop),
            Row(status: 200, isProbe: true, atNone: .drop, withoutProbes: .drop),
            Row(status: 503, isProbe: true, atNone: .write),
            Row(status: 404, isRejected: true, isProbe: true, atNone: .write),
        ]
        let none = try #require(plan { $0.sample = SamplePercentage(millionths: 0) })
        let probes = try #require(plan { $0.logsProbes = false })
        var sampling = AccessSampling(seed: 1)
        for row in rows {
            let candidate = AccessSampling.Candidate(
                status: row.status, isRejected: row.isRejected, isProbe: row.isProbe)
            for _ in 0..<20 {
                let (atNone, withoutProbes) = (sampling.decide(candidate, none), sampling.decide(candidate, probes))
                #expect(atNone == row.atNone && withoutProbes == row.withoutProbes, "\(row)")
            }
        }
    }

    @Test(arguments: [10_000, 250_000, 990_000])
    func `the share is what was asked for`(millionths: Int) throws {
        let plan = try #require(plan { $0.sample = SamplePercentage(millionths: millionths) })
        var sampling = AccessSampling(seed: 42)
        let candidate = AccessSampling.Candidate(status: 200, isRejected: false, isProbe: false)
        var written = 0
        let count = 200_000
        for _ in 0..<count where sampling.decide(candidate, plan) == .writeSampled { written += 1 }
        let share = Double(written) / Double(count)
        #expect(abs(share - Double(millionths) / 1_000_000) < 0.005)
    }
}

@Suite struct SelectedLineTests {
    private static let instance = Array("host-1".utf8)

    private func line(_ change: (inout SelectedLine) -> Void = { _ in }) -> SelectedLine {
        var line = SelectedLine()
        line.milliseconds = 1_700_000_000_123
        line.status = 200
        line.bytesIn = 5
        line.bytesOut = 7
        line.microseconds = 42
        line.listener = Array("127.0.0.1:8080".utf8)
        line.names.route = Array("api".utf8)
        line.names.reason = Array("ok".utf8)
        change(&line)
        return line
    }

    private func write(
        _ fields: [AccessField], _ line: SelectedLine, _ format: AccessFormat = .json, path: String = "/a",
        names: String = "", trace: String? = nil
    ) throws -> String {
        var configuration = AccessLogConfiguration()
        configuration.fields = fields
        let plan = try #require(AccessPlan(configuration))
        var request = RequestTexts()
        let client = AddressText("192.0.2.1".utf8)
        let texts = [Array("id1".utf8), Array("GET".utf8), Array("example.com".utf8), Array(path.utf8)]
        let written = Array(names.utf8)
        unsafe texts[0].withUnsafeBufferPointer { unsafe request.begin(requestID: $0, client: client) }
        unsafe texts[1].withUnsafeBufferPointer { method in
            unsafe texts[2].withUnsafeBufferPointer { unsafe request.add(method: method, host: $0) }
        }
        unsafe texts[3].withUnsafeBufferPointer { unsafe request.set(path: $0) }
        unsafe written.withUnsafeBufferPointer { unsafe request.add(names: $0) }
        if let trace { request.add(trace: trace) }
        var out = ByteBuffer()
        SelectedLineWriter(plan, format, instanceID: Self.instance).write(line, &request, into: &out)
        return String(decoding: out.array, as: UTF8.self)
    }

    @Test func `a line has the fields in their order`() throws {
        let text = try write([.status, .method, .timestamp, .timeMilliseconds, .time, .level], line())
        #expect(
            text
                == #"{"status":200,"method":"GET","timestamp":"2023-11-14T22:13:20.123Z","time_ms":1700000000123,"#
                + #""time":1700000000,"level":"info"}"# + "\n")
    }

    @Test func `what a request does not have is left out, at the beginning and the end too`() throws {
        let fields: [AccessField] = [.userAgent, .status, .tlsVersion, .condition, .bytesOut, .upstreamStatus]
        #expect(try write(fields, line()) == "{\"status\":200,\"bytes_out\":7}\n")
        #expect(try write([.userAgent], line()) == "{}\n")
        #expect(try write(fields, line(), .text) == "status=200 bytes_out=7\n")
    }

    @Test func `every field has a value of its own type`() throws {
        let full = line { line in
            line.isCheck = true
            line.isSampled = true
            line.tlsVersion = Array("TLSv1.3".utf8)
            line.names.member = Array("nonce".utf8)
            line.names.condition = Array("auth max_age".utf8)
            line.names.provider = Array("apple".utf8)
            line.names.upstream = Array("http://127.0.0.1:9000".utf8)
        }
        let names = "\",\"subject\":\"u1\",\"session_id\":\"s1"
        let numbers: Set<AccessField> = [
            .time, .timeMilliseconds, .status, .bytesIn, .bytesOut, .duration, .retries, .weight,
        ]
        let absent: Set<AccessField> = [.userAgent, .referer, .upstreamStatus, .upstreamTime]
        for field in AccessField.allCases where !absent.contains(field) {
            let text = try write([field], full, names: names, trace: Self.trace)
            let isText = text.hasPrefix("{\"\(field.rawValue)\":\"") && text.hasSuffix("\"}\n")
            #expect(text.hasPrefix("{\"\(field.rawValue)\":"), "\(text)")
            #expect(isText == !(numbers.contains(field) || field == .check), "\(text)")
        }
        #expect(
            try write([.subject, .sessionID], full, names: names) == "{\"subject\":\"u1\",\"session_id\":\"s1\"}\n")
    }

    private static let trace = "4bf92f3577b34da6a3ce929d0e0e4736"

    @Test func `the trace of a sampled request is a field like any other`() throws {
        let names = "\",\"subject\":\"u1\",\"session_id\":\"s1"
        let fields: [AccessField] = [.traceID, .subject, .sessionID]
        #expect(
            try write(fields, line(), names: names, trace: Self.trace)
                == "{\"trace_id\":\"\(Self.trace)\",\"subject\":\"u1\",\"session_id\":\"s1\"}\n")
        #expect(try write(fields, line(), trace: Self.trace) == "{\"trace_id\":\"\(Self.trace)\"}\n")
        #expect(try write(fields, line(), names: names) == "{\"subject\":\"u1\",\"session_id\":\"s1\"}\n")
        #expect(try write([.traceID], line(), .text, trace: Self.trace) == "trace_id=\(Self.trace)\n")
        var sampled = AccessLogConfiguration()
        sampled.sample = SamplePercentage(millionths: 10_000)
        #expect(AccessPlan(sampled)?.fields.contains(.traceID) == true)
    }

    @Test func `paths are escaped, and texts with spaces are quoted as text`() throws {
        #expect(try write([.path], line(), path: "/a\"b\\\u{1}") == #"{"path":"/a\"b\\?"}"# + "\n")
        let conditional = line { $0.names.condition = Array("auth max_age".utf8) }
        #expect(try write([.condition, .path], conditional, .text) == "condition=\"auth max_age\" path=/a\n")
    }

    @Test func `the default fields make the line that has no plan`() throws {
        let expected =
            #"{"time":1700000000,"event":"request","instance_id":"host-1","request_id":"id1","client":"192.0.2.1","#
            + #""method":"GET","host":"example.com","path":"/a","subject":"u1","session_id":"","route":"api","#
            + #""status":200,"reason":"ok","provider":"","upstream":"","bytes_in":5,"bytes_out":7,"duration_us":42,"#
            + #""weight":1}"# + "\n"
        let names = "\",\"subject\":\"u1\",\"session_id\":\""
        let text = try write(AccessField.standard + [.weight], line(), names: names)
        #expect(text == expected)
        // As the other formatter writes it.
        var records = AccessLineFormatter(instanceID: "host-1")
        let key = AccessKey(route: 1, endpoint: 2, status: 200, reason: 0, provider: 0, epoch: 0)
        records.prepare(
            key, route: Array("api".utf8), reason: Array("ok".utf8), provider: [], upstream: [], format: .json)
        var request = RequestTexts()
        let client = AddressText("192.0.2.1".utf8)
        let texts = [
            Array("id1".utf8), Array("GET".utf8), Array("example.com".utf8), Array("/a".utf8), Array(names.utf8),
        ]
        unsafe texts[0].withUnsafeBufferPointer { unsafe request.begin(requestID: $0, client: client) }
        unsafe texts[1].withUnsafeBufferPointer { method in
            unsafe texts[2].withUnsafeBufferPointer { unsafe request.add(method: method, host: $0) }
        }
        unsafe texts[3].withUnsafeBufferPointer { unsafe request.set(path: $0) }
        unsafe texts[4].withUnsafeBufferPointer { unsafe request.add(names: $0) }
        let numbers = AccessLine(unixTime: 1_700_000_000, bytesIn: 5, bytesOut: 7, microseconds: 42)
        records.append(numbers, &request, key, format: .json)
        let sink = CollectedLines()
        records.flush(to: sink)
        #expect(sink.text == text.replacing(",\"weight\":1", with: ""))
    }

    // MARK: Notes

    @Test func `notes have what a head says, and no query`() throws {
        var notes = AccessNotes()
        let exchange = Handle<Exchange>(index: 3, generation: 7)
        let agent = "curl/8 \"quoted\" \\ \u{E9}" + String(repeating: "x", count: 400)
        let text =
            "GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: \(agent)\r\n"
            + "Referer: https://user:secret@b.example/p?token=secret\r\n\r\n"
        var head = RequestHead(maximumFields: 20)
        var parser = RequestParser(maximumHeadBytes: 4096)
        let bytes = Array(text.utf8)
        unsafe bytes.withUnsafeBufferPointer { bytes in
            _ = unsafe parser.parse(bytes.span, into: &head)
            unsafe notes.note(head, bytes, of: exchange)
        }
        notes.note(status: 201, microseconds: 9, of: exchange)
        let entry = notes.entry(of: exchange)
        let found = String(decoding: entry.userAgent, as: UTF8.self)
        #expect(found.hasPrefix(#"curl/8 \"quoted\" \\ ??xxx"#) && found.utf8.count == 256 + 3)
        #expect(String(decoding: entry.referer, as: UTF8.self) == "b.example/p")
        #expect(entry.status == 201 && entry.microseconds == 9)
        // The slot's next exchange has none of it.
        let next = notes.entry(of: Handle(index: 3, generation: 8))
        #expect(next.userAgent.isEmpty && next.referer.isEmpty && next.status == 0)
        let unknown = notes.entry(of: Handle(index: 300, generation: 0))
        #expect(unknown.status == 0)
    }
}
