import MartletCore
import Synchronization
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct AccessLineFormatterTests {
    private final class Sink: AccessLogging {
        let format: AccessFormat
        private let written = Mutex("")

        init(_ format: AccessFormat) { self.format = format }

        var text: String { written.withLock { $0 } }

        func take(_ lines: inout ByteBuffer) {
            let text = String(decoding: lines.array, as: UTF8.self)
            lines.removeAll()
            written.withLock { $0 += text }
        }
    }

    /// The texts of one record.
    private struct Texts {
        var path = "/v1/x"
        var client = "192.0.2.1"
        var route = "api"
        var reason = "ok"
        var provider = "apple"
        var upstream = "http://127.0.0.1:9000"
        var names = ""
        var condition = ""
    }

    private func lend<Result>(_ text: String, _ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        let bytes = Array(text.utf8)
        return unsafe bytes.withUnsafeBufferPointer { unsafe body($0) }
    }

    private func write(
        _ texts: Texts, time: Int64, status: Int, _ key: AccessKey, _ format: AccessFormat,
        to records: inout AccessLineFormatter
    ) {
        var request = RequestTexts()
        let client = AddressText(texts.client.utf8)
        unsafe lend("0123456789abcdef") { unsafe request.begin(requestID: $0, client: client) }
        unsafe lend("GET") { method in
            unsafe lend("example.com") { unsafe request.add(method: method, host: $0) }
        }
        unsafe lend(texts.path) { unsafe request.set(path: $0) }
        unsafe lend(texts.names) { unsafe request.add(names: $0) }
        if !records.isPrepared(for: key) {
            records.prepare(
                key, route: Array(texts.route.utf8), reason: Array(texts.reason.utf8),
                condition: Array(texts.condition.utf8), provider: Array(texts.provider.utf8),
                upstream: Array(texts.upstream.utf8),
                format: format)
        }
        let line = AccessLine(unixTime: time, bytesIn: 5, bytesOut: 123_456, microseconds: 789)
        records.append(line, &request, key, format: format)
    }

    private func expect(
        _ texts: Texts, _ format: AccessFormat, of instanceID: String = "", _ expected: String,
        at location: SourceLocation = #_sourceLocation
    ) {
        var records = AccessLineFormatter(instanceID: instanceID)
        let key = AccessKey(route: 1, endpoint: 2, status: 200, reason: 0, provider: 0, epoch: 0)
        for _ in 0..<2 { write(texts, time: 1_700_000_000, status: 200, key, format, to: &records) }
        let sink = Sink(format)
        records.flush(to: sink, now: 0, isIdle: true)
        #expect(sink.text == expected + expected, sourceLocation: location)
    }

    @Test func `a record is one line of JSON`() {
        expect(
            Texts(), .json,
            #"{"time":1700000000,"event":"request","request_id":"0123456789abcdef","client":"192.0.2.1","#
                + #""method":"GET","host":"example.com","path":"/v1/x","route":"api","status":200,"reason":"ok","#
                + #""provider":"apple","upstream":"http://127.0.0.1:9000","bytes_in":5,"bytes_out":123456,"#
                + #""duration_us":789}"# + "\n")
    }

    @Test func `a record is one line of text`() {
        expect(
            Texts(), .text,
            "1700000000 192.0.2.1 GET example.com/v1/x 200 ok route=api upstream=http://127.0.0.1:9000 789us "
                + "id=0123456789abcdef\n")
    }

    @Test func `a record names its instance`() {
        expect(
            Texts(), .json, of: "edge-1",
            #"{"time":1700000000,"event":"request","instance_id":"edge-1","request_id":"0123456789abcdef","#
                + #""client":"192.0.2.1","method":"GET","host":"example.com","path":"/v1/x","route":"api","#
                + #""status":200,"reason":"ok","provider":"apple","upstream":"http://127.0.0.1:9000","bytes_in":5,"#
                + #""bytes_out":123456,"duration_us":789}"# + "\n")
        expect(
            Texts(names: #"","subject":"usr_1","session_id":"ses_2"#), .text, of: "edge-1",
            "1700000000 192.0.2.1 GET example.com/v1/x 200 ok route=api upstream=http://127.0.0.1:9000 789us "
                + "id=0123456789abcdef subject=usr_1 session_id=ses_2 instance_id=edge-1\n")
    }

    @Test func `a record names its caller, and the condition that failed`() {
        let names = #"","subject":"usr_1","session_id":"ses_2"#
        let texts = Texts(reason: "policy.claim_missing", names: names, condition: "authorize[1] any (a, b)")
        expect(
            texts, .json,
            #"{"time":1700000000,"event":"request","request_id":"0123456789abcdef","client":"192.0.2.1","#
                + #""method":"GET","host":"example.com","path":"/v1/x","subject":"usr_1","session_id":"ses_2","#
                + #""route":"api","status":200,"reason":"policy.claim_missing","condition":"authorize[1] any (a, b)","#
                + #""provider":"apple","upstream":"http://127.0.0.1:9000","bytes_in":5,"bytes_out":123456,"#
                + #""duration_us":789}"# + "\n")
        expect(
            texts, .text,
            "1700000000 192.0.2.1 GET example.com/v1/x 200 policy.claim_missing "
                + #"condition="authorize[1] any (a, b)" route=api upstream=http://127.0.0.1:9000 789us "#
                + "id=0123456789abcdef subject=usr_1 session_id=ses_2\n")
        expect(
            Texts(names: #"","subject":"usr_1","session_id":""#), .text,
            "1700000000 192.0.2.1 GET example.com/v1/x 200 ok route=api upstream=http://127.0.0.1:9000 789us "
                + "id=0123456789abcdef subject=usr_1\n")
    }

    @Test(arguments: ["mat_", "mrt_", "mct_", "mak_", "mlt_", "moc_"])
    func `a token in a path is in no line`(prefix: String) {
        for format in [AccessFormat.json, .text] {
            for path in ["/reset/%", "/%/x", "/a/%.b/%", "/x;t=%"] {
                let secret = "Yp7mU0m3hJYJ8m6cPZs7C0T3b0Qk8s-QJZk3m_b2dXA"
                var records = AccessLineFormatter(instanceID: "")
                let key = AccessKey(route: 1, endpoint: 2, status: 200, reason: 0, provider: 0, epoch: 0)
                write(
                    Texts(path: path.replacing("%", with: prefix + secret)), time: 1, status: 200, key, format,
                    to: &records)
                let sink = Sink(format)
                records.flush(to: sink, now: 0, isIdle: true)
                #expect(!sink.text.contains("Yp7m") && sink.text.contains(path.replacing("%", with: prefix + "***")))
            }
        }
    }

    @Test(arguments: [("\"", "\\\""), ("\\", "\\\\"), ("\n", "?"), ("\u{7F}", "?"), ("\u{1F}", "?"), ("é", "??")])
    func `a path is escaped wherever it needs it`(special: String, written: String) {
        for count in 0...20 {
            for position in 0...count {
                let before = String(repeating: "/", count: position)
                let behind = String(repeating: "~", count: count - position)
                var records = AccessLineFormatter(instanceID: "")
                let key = AccessKey(route: 1, endpoint: 2, status: 200, reason: 0, provider: 0, epoch: 0)
                write(Texts(path: before + special + behind), time: 1, status: 200, key, .text, to: &records)
                let sink = Sink(.text)
                records.flush(to: sink, now: 0, isIdle: true)
                let line =
                    "1 192.0.2.1 GET example.com\(before)\(written)\(behind) 200 ok route=api "
                    + "upstream=http://127.0.0.1:9000 789us id=0123456789abcdef\n"
                #expect(sink.text == line)
            }
        }
    }

    @Test(arguments: [("\"", "\\\""), ("\\", "\\\\"), ("\n", "?"), ("é", "??")])
    func `an escaped path in a JSON record has the same neighbors`(special: String, written: String) {
        let names = #"","subject":"usr_1","session_id":"ses_2"#
        let path = "/v1/x"
        expect(
            Texts(path: path + special + "y", names: names), .json,
            #"{"time":1700000000,"event":"request","request_id":"0123456789abcdef","client":"192.0.2.1","#
                + #""method":"GET","host":"example.com","path":""# + path + written + #"y","#
                + #""subject":"usr_1","session_id":"ses_2","route":"api","status":200,"reason":"ok","#
                + #""provider":"apple","upstream":"http://127.0.0.1:9000","bytes_in":5,"bytes_out":123456,"#
                + #""duration_us":789}"# + "\n")
    }

    @Test func `texts of different keys are never mixed up`() {
        var records = AccessLineFormatter(instanceID: "")
        var expected = ""
        for number in 0..<600 {
            let value = Int32(number * 7 % 120)
            let texts = Texts(
                route: "route-\(value)", reason: "reason-\(value % 3)", provider: "provider-\(value % 2)",
                upstream: "upstream-\(value % 5)")
            let key = AccessKey(
                route: value, endpoint: value % 5, status: 200 + Int(value), reason: value % 3, provider: value % 2,
                epoch: 0)
            write(texts, time: Int64(number / 50), status: 200 + Int(value), key, .text, to: &records)
            expected +=
                "\(number / 50) 192.0.2.1 GET example.com/v1/x \(200 + value) reason-\(value % 3) route=route-\(value) "
                + "upstream=upstream-\(value % 5) 789us id=0123456789abcdef\n"
        }
        let sink = Sink(.text)
        records.flush(to: sink, now: 0, isIdle: true)
        #expect(sink.text == expected)
    }

    @Test func `a key of another configuration is another key`() {
        var records = AccessLineFormatter(instanceID: "")
        let key = AccessKey(route: 1, endpoint: -1, status: 401, reason: 3, provider: -1, epoch: 4)
        records.prepare(key, route: [], reason: [], provider: [], upstream: [], format: .json)
        let own = records.isPrepared(for: key)
        let other = records.isPrepared(
            for: AccessKey(route: 1, endpoint: -1, status: 401, reason: 3, provider: -1, epoch: 5))
        #expect(own)
        #expect(!other)
    }
}
