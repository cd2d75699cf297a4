import MartletConfig
import MartletCore
import MartletTesting
import Testing

@testable import MartletProxy

/// Lines of the gateway, compared with ones that are put together in the plainest way.
@Suite struct `Access lines` {
    /// Every combination of what a line may have or not, and of texts that need care.
    private static let lines: [PlainAccessLine] = {
        var random = SeededGenerator(seed: 20_261_130)
        func one<Value>(_ values: [Value]) -> Value { values[Int.random(in: 0..<values.count, using: &random)] }
        return (0..<400).map { _ in
            PlainAccessLine(
                instanceID: one(["", "edge-1"]), requestID: one(["0123456789abcdef", "x"]),
                client: one(["192.0.2.1", "2001:db8::1", "unix", ""]), method: one(["GET", "DELETE", ""]),
                host: one(["example.com", "a:81", ""]),
                path: one([
                    "/v1/x", "", "/", "/a\"b\\\u{1}", "/_a", "/\u{E9}", "/" + String(repeating: "long", count: 80),
                ]),
                caller: one([nil, ("usr_1", "ses_2"), ("usr_1", ""), ("", "")]),
                trace: one([nil, nil, "4bf92f3577b34da6a3ce929d0e0e4736"]), route: one(["api", "-"]),
                status: one([200, 401, 503]), reason: one(["ok", "policy.claim_missing"]),
                member: one(["", "", "email"]),
                condition: one(["", "", "authorize[1] any (a, b)"]), provider: one(["", "apple"]),
                upstream: one(["", "http://127.0.0.1:9000"]), isCheck: one([false, false, true]),
                bytesIn: one([0, 7, 4096]), bytesOut: one([0, 12, 123_456_789_012]),
                microseconds: one([0, 789, 60_000_000]),
                protocolVersion: one(["HTTP/1.0", "HTTP/1.1", "HTTP/2"]), listener: one(["", "127.0.0.1:8080"]),
                tlsVersion: one(["", "TLSv1.3"]), upstreamStatus: one([0, 418]),
                upstreamMicroseconds: one([0, 30_000]),
                retries: one([0, 2]))
        }
    }()

    @Test func `without a plan have the default fields`() {
        for line in Self.lines {
            let (json, text) = (AccessLineBench.write(line, .json), AccessLineBench.write(line, .text))
            #expect(json == line.json(AccessField.standard))
            #expect(text == line.text)
        }
    }

    @Test func `of which the default fields are chosen by name are the same`() {
        for line in Self.lines {
            // Something has to differ from the default for a plan.
            let fields = AccessField.standard + [.weight]
            let json = AccessLineBench.write(line, .json, fields)
            #expect(json == line.json(fields))
            #expect(json.replacing(",\"weight\":1}", with: "}") == AccessLineBench.write(line, .json))
            #expect(AccessLineBench.write(line, .text, fields) == line.text(fields))
        }
    }

    @Test func `have any one field alone`() {
        for field in AccessField.allCases {
            for line in Self.lines.prefix(60) {
                #expect(AccessLineBench.write(line, .json, [field]) == line.json([field]))
                #expect(AccessLineBench.write(line, .text, [field]) == line.text([field]))
            }
        }
    }

    @Test func `have any fields in any order`() {
        var random = SeededGenerator(seed: 7)
        for line in Self.lines {
            let shuffled = AccessField.allCases.shuffled(using: &random)
            let fields = Array(shuffled.prefix(Int.random(in: 1...shuffled.count, using: &random)))
            #expect(AccessLineBench.write(line, .json, fields) == line.json(fields))
            #expect(AccessLineBench.write(line, .text, fields) == line.text(fields))
        }
    }

    @Test func `have the fields of a request together or apart`() {
        let together: [AccessField] = [.requestID, .client, .method, .host, .path, .subject, .sessionID, .traceID]
        let choices: [[AccessField]] = [
            together, [.status] + together, together + [.status], Array(together.dropLast()),
            Array(together.dropFirst()),
            together.reversed(), [.time] + together + [.bytesIn, .bytesOut],
        ]
        for line in Self.lines.prefix(100) {
            for fields in choices { #expect(AccessLineBench.write(line, .json, fields) == line.json(fields)) }
        }
    }
}

/// Writes lines of the gateway.
enum AccessLineBench {
    private static func lend(_ text: String, _ body: (UnsafeBufferPointer<UInt8>) -> Void) {
        let bytes = Array(text.utf8)
        unsafe bytes.withUnsafeBufferPointer { unsafe body($0) }
    }

    /// The texts of a line's request.
    static func begin(_ request: inout RequestTexts, _ line: PlainAccessLine) {
        let client = AddressText(line.client.utf8)
        unsafe lend(line.requestID) { unsafe request.begin(requestID: $0, client: client) }
        unsafe lend(line.method) { method in
            unsafe lend(line.host) { unsafe request.add(method: method, host: $0) }
        }
        unsafe lend(line.path) { unsafe request.set(path: $0) }
        unsafe lend(line.names) { unsafe request.add(names: $0) }
        if let trace = line.trace { request.add(trace: trace) }
    }

    /// A line with these fields; without any, that of a configuration that says nothing.
    static func write(_ line: PlainAccessLine, _ format: AccessFormat, _ fields: [AccessField]? = nil) -> String {
        var request = RequestTexts()
        begin(&request, line)
        var configuration = AccessLogConfiguration()
        if let fields { configuration.fields = fields }
        var out = ByteBuffer()
        if let plan = AccessPlan(configuration) {
            SelectedLineWriter(plan, format, instanceID: Array(line.instanceID.utf8))
                .write(selected(line), &request, into: &out)
            return String(decoding: out.array, as: UTF8.self)
        }
        var records = AccessLineFormatter(instanceID: line.instanceID)
        let key = AccessKey(
            route: 1, endpoint: 2, status: line.status, reason: 0, provider: 0, epoch: 0, isCheck: line.isCheck)
        records.prepare(
            key, route: Array(line.route.utf8), reason: Array(line.reason.utf8), member: Array(line.member.utf8),
            condition: Array(line.condition.utf8), provider: Array(line.provider.utf8),
            upstream: Array(line.upstream.utf8), format: format)
        let numbers = AccessLine(
            unixTime: line.milliseconds / 1000, bytesIn: line.bytesIn, bytesOut: line.bytesOut,
            microseconds: line.microseconds)
        records.append(numbers, &request, key, format: format)
        let sink = CollectedLines(format)
        records.flush(to: sink)
        return sink.text
    }

    private static func selected(_ line: PlainAccessLine) -> SelectedLine {
        var selected = SelectedLine()
        selected.milliseconds = line.milliseconds
        selected.status = line.status
        selected.isCheck = line.isCheck
        selected.bytesIn = line.bytesIn
        selected.bytesOut = line.bytesOut
        selected.microseconds = line.microseconds
        selected.retries = line.retries
        selected.protocolVersion = line.protocolVersion
        selected.tlsVersion = Array(line.tlsVersion.utf8)
        selected.listener = Array(line.listener.utf8)
        selected.names.route = Array(line.route.utf8)
        selected.names.reason = Array(line.reason.utf8)
        selected.names.member = Array(line.member.utf8)
        selected.names.condition = Array(line.condition.utf8)
        selected.names.provider = Array(line.provider.utf8)
        selected.names.upstream = Array(line.upstream.utf8)
        if line.upstreamStatus > 0 {
            var notes = AccessNotes()
            let exchange = Handle<Exchange>(index: 0, generation: 1)
            notes.note(status: line.upstreamStatus, microseconds: line.upstreamMicroseconds, of: exchange)
            selected.notes = notes.entry(of: exchange)
        }
        return selected
    }
}

/// Collects lines as a sink does.
final class CollectedLines: AccessLogging {
    let format: AccessFormat
    private let box = Box("")

    init(_ format: AccessFormat = .json) { self.format = format }

    var text: String { box.value }

    func take(_ lines: inout ByteBuffer) {
        let text = String(decoding: lines.array, as: UTF8.self)
        lines.removeAll()
        box.withLock { $0 += text }
    }
}
