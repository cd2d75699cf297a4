import MartletConfig
import MartletCore
import MartletTesting
import Testing

@testable import MartletDecisions
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
            let (json, text) = (AccessLineBench.text(line, .json), AccessLineBench.text(line, .text))
            #expect(json == line.json(AccessField.standard))
            #expect(text == line.text)
        }
    }

    @Test func `have the same text where the default fields are chosen by name`() {
        for line in Self.lines {
            for format in [AccessFormat.json, .text] {
                #expect(
                    AccessLineBench.text(line, format, AccessField.standard) == AccessLineBench.text(line, format))
            }
            // As text, one more field gives names to all of them.
            let fields = AccessField.standard + [.weight]
            let json = AccessLineBench.text(line, .json, fields)
            #expect(json == line.json(fields))
            #expect(json.replacing(",\"weight\":1}", with: "}") == AccessLineBench.text(line, .json))
            #expect(AccessLineBench.text(line, .text, fields) == line.text(fields))
        }
    }

    @Test func `have any one field alone`() {
        for field in AccessField.allCases {
            for line in Self.lines.prefix(60) {
                #expect(AccessLineBench.text(line, .json, [field]) == line.json([field]))
                #expect(AccessLineBench.text(line, .text, [field]) == line.text([field]))
            }
        }
    }

    @Test func `have any fields in any order`() {
        var random = SeededGenerator(seed: 7)
        for line in Self.lines {
            let shuffled = AccessField.allCases.shuffled(using: &random)
            let fields = Array(shuffled.prefix(Int.random(in: 1...shuffled.count, using: &random)))
            #expect(AccessLineBench.text(line, .json, fields) == line.json(fields))
            #expect(AccessLineBench.text(line, .text, fields) == line.text(fields))
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
            for fields in choices { #expect(AccessLineBench.text(line, .json, fields) == line.json(fields)) }
        }
    }
}

/// Writes lines as a loop does.
struct AccessLineBench: ~Copyable {
    let sink: CollectedLines
    private(set) var writer: AccessLogWriter

    /// - Parameter fields: without any, those of a configuration that says nothing.
    init(_ format: AccessFormat, _ fields: [AccessField]? = nil, instanceID: String = "") {
        var configuration = AccessLogConfiguration()
        if let fields { configuration.fields = fields }
        sink = CollectedLines(format, instanceID: instanceID)
        writer = AccessLogWriter(sink, AccessPlan(configuration))
    }

    /// What was written.
    var text: String {
        mutating get {
            writer.flush(now: 0, isIdle: true)
            return sink.text
        }
    }

    /// Writes a line; what lines with its key share is that of the first one.
    mutating func write(_ line: PlainAccessLine, _ key: AccessKey = AccessLineBench.key()) {
        var request = RequestTexts()
        Self.begin(&request, line)
        if !writer.isPrepared(for: key, at: key.slot) {
            let instanceID = writer.facts.instanceID
            writer.facts = Self.facts(line)
            writer.facts.instanceID = instanceID
            writer.prepare(key, &request)
        }
        writer.facts.unixTime = line.milliseconds / 1000
        writer.facts.milliseconds = line.milliseconds
        writer.facts.bytesIn = line.bytesIn
        writer.facts.bytesOut = line.bytesOut
        writer.facts.microseconds = line.microseconds
        writer.append(&request, at: key.slot)
    }

    static func key(
        route: Int32 = 1, endpoint: Int32 = 2, status: Int = 200, reason: Int32 = 3, provider: Int32 = 4
    ) -> AccessKey {
        AccessKey(route: route, endpoint: endpoint, status: status, reason: reason, provider: provider)
    }

    func isPrepared(for key: AccessKey) -> Bool { writer.isPrepared(for: key, at: key.slot) }

    /// The text of one line.
    static func text(_ line: PlainAccessLine, _ format: AccessFormat, _ fields: [AccessField]? = nil) -> String {
        var bench = AccessLineBench(format, fields, instanceID: line.instanceID)
        bench.write(line)
        return bench.text
    }

    private static func lend(_ text: String, _ body: (UnsafeBufferPointer<UInt8>) -> Void) {
        let bytes = Array(text.utf8)
        unsafe bytes.withUnsafeBufferPointer { unsafe body($0) }
    }

    /// The texts of a line's request.
    private static func begin(_ request: inout RequestTexts, _ line: PlainAccessLine) {
        let client = AddressText(line.client.utf8)
        unsafe lend(line.requestID) { unsafe request.begin(requestID: $0, client: client) }
        unsafe lend(line.method) { method in
            unsafe lend(line.host) { unsafe request.add(method: method, host: $0) }
        }
        unsafe lend(line.path) { unsafe request.set(path: $0) }
        unsafe lend(line.names) { unsafe request.add(names: $0) }
        if let trace = line.trace { request.add(trace: trace) }
    }

    private static func facts(_ line: PlainAccessLine) -> AccessFacts {
        var facts = AccessFacts()
        facts.status = line.status
        facts.isCheck = line.isCheck
        facts.route = Array(line.route.utf8)
        facts.reason = Array(line.reason.utf8)
        facts.member = Array(line.member.utf8)
        facts.condition = Array(line.condition.utf8)
        facts.provider = Array(line.provider.utf8)
        facts.upstream = Array(line.upstream.utf8)
        facts.weight = Array("1".utf8)
        facts.retries = line.retries
        facts.protocolVersion = line.protocolVersion
        facts.listener = Array(line.listener.utf8)
        facts.tlsVersion = line.tlsVersion
        if line.upstreamStatus > 0 {
            var notes = AccessNotes()
            notes.status = line.upstreamStatus
            notes.microseconds = line.upstreamMicroseconds
            facts.notes = notes
        }
        return facts
    }
}

/// Collects lines as a sink does.
final class CollectedLines: AccessLogging {
    private let formats: Box<AccessFormat>
    let instanceID: String
    private let box = Box("")

    init(_ format: AccessFormat = .json, instanceID: String = "") {
        formats = Box(format)
        self.instanceID = instanceID
    }

    var format: AccessFormat {
        get { formats.value }
        set { formats.withLock { $0 = newValue } }
    }

    var text: String { box.value }

    func take(_ lines: inout ByteBuffer) {
        let text = String(decoding: lines.array, as: UTF8.self)
        lines.removeAll()
        box.withLock { $0 += text }
    }
}
