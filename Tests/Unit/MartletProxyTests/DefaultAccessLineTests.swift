import MartletCore
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct DefaultAccessLineTests {
    private func expect(
        _ line: PlainAccessLine, _ format: AccessFormat, of instanceID: String = "", _ expected: String,
        at location: SourceLocation = #_sourceLocation
    ) {
        var bench = AccessLineBench(format, instanceID: instanceID)
        for _ in 0..<2 { bench.write(line) }
        let text = bench.text
        #expect(text == expected + expected, sourceLocation: location)
    }

    @Test func `a record is one line of JSON`() {
        expect(
            PlainAccessLine(), .json,
            #"{"time":1700000000,"event":"request","request_id":"0123456789abcdef","client":"192.0.2.1","#
                + #""method":"GET","host":"example.com","path":"/v1/x","route":"api","status":200,"reason":"ok","#
                + #""provider":"apple","upstream":"http://127.0.0.1:9000","bytes_in":5,"bytes_out":123456,"#
                + #""duration_us":789}"# + "\n")
    }

    @Test func `a record is one line of text`() {
        expect(
            PlainAccessLine(), .text,
            "1700000000 192.0.2.1 GET example.com/v1/x 200 ok route=api upstream=http://127.0.0.1:9000 789us "
                + "id=0123456789abcdef\n")
    }

    @Test func `a record names its instance`() {
        expect(
            PlainAccessLine(), .json, of: "edge-1",
            #"{"time":1700000000,"event":"request","instance_id":"edge-1","request_id":"0123456789abcdef","#
                + #""client":"192.0.2.1","method":"GET","host":"example.com","path":"/v1/x","route":"api","#
                + #""status":200,"reason":"ok","provider":"apple","upstream":"http://127.0.0.1:9000","bytes_in":5,"#
                + #""bytes_out":123456,"duration_us":789}"# + "\n")
        expect(
            PlainAccessLine(caller: ("usr_1", "ses_2")), .text, of: "edge-1",
            "1700000000 192.0.2.1 GET example.com/v1/x 200 ok route=api upstream=http://127.0.0.1:9000 789us "
                + "id=0123456789abcdef subject=usr_1 session_id=ses_2 instance_id=edge-1\n")
    }

    @Test func `a record names its caller, and the condition that failed`() {
        let texts = PlainAccessLine(
            caller: ("usr_1", "ses_2"), reason: "policy.claim_missing", condition: "authorize[1] any (a, b)")
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
            PlainAccessLine(caller: ("usr_1", "")), .text,
            "1700000000 192.0.2.1 GET example.com/v1/x 200 ok route=api upstream=http://127.0.0.1:9000 789us "
                + "id=0123456789abcdef subject=usr_1\n")
    }

    @Test(arguments: ["mat_", "mrt_", "mct_", "mak_", "mlt_", "moc_"])
    func `a token in a path is in no line`(prefix: String) {
        for format in [AccessFormat.json, .text] {
            for path in ["/reset/%", "/%/x", "/a/%.b/%", "/x;t=%"] {
                let secret = "Yp7mU0m3hJYJ8m6cPZs7C0T3b0Qk8s-QJZk3m_b2dXA"
                let text = AccessLineBench.text(
                    PlainAccessLine(path: path.replacing("%", with: prefix + secret)), format)
                #expect(!text.contains("Yp7m") && text.contains(path.replacing("%", with: prefix + "***")))
            }
        }
    }

    @Test(arguments: [("\"", "\\\""), ("\\", "\\\\"), ("\n", "?"), ("\u{7F}", "?"), ("\u{1F}", "?"), ("é", "??")])
    func `a path is escaped wherever it needs it`(special: String, written: String) {
        for count in 0...20 {
            for position in 0...count {
                let before = String(repeating: "/", count: position)
                let behind = String(repeating: "~", count: count - position)
                let text = AccessLineBench.text(PlainAccessLine(path: before + special + behind), .text)
                let line =
                    "1700000000 192.0.2.1 GET example.com\(before)\(written)\(behind) 200 ok route=api "
                    + "upstream=http://127.0.0.1:9000 789us id=0123456789abcdef\n"
                #expect(text == line)
            }
        }
    }

    @Test(arguments: [("\"", "\\\""), ("\\", "\\\\"), ("\n", "?"), ("é", "??")])
    func `an escaped path in a JSON record has the same neighbors`(special: String, written: String) {
        let path = "/v1/x"
        expect(
            PlainAccessLine(path: path + special + "y", caller: ("usr_1", "ses_2")), .json,
            #"{"time":1700000000,"event":"request","request_id":"0123456789abcdef","client":"192.0.2.1","#
                + #""method":"GET","host":"example.com","path":""# + path + written + #"y","#
                + #""subject":"usr_1","session_id":"ses_2","route":"api","status":200,"reason":"ok","#
                + #""provider":"apple","upstream":"http://127.0.0.1:9000","bytes_in":5,"bytes_out":123456,"#
                + #""duration_us":789}"# + "\n")
    }

    @Test func `texts of different keys are never mixed up`() {
        var bench = AccessLineBench(.text)
        var expected = ""
        for number in 0..<600 {
            let value = Int32(number * 7 % 120)
            let line = PlainAccessLine(
                milliseconds: Int64(number / 50) * 1000, route: "route-\(value)", status: 200 + Int(value),
                reason: "reason-\(value % 3)", provider: "provider-\(value % 2)", upstream: "upstream-\(value % 5)")
            let key = AccessLineBench.key(
                route: value, endpoint: value % 5, status: 200 + Int(value), reason: value % 3, provider: value % 2)
            bench.write(line, key)
            expected +=
                "\(number / 50) 192.0.2.1 GET example.com/v1/x \(200 + value) reason-\(value % 3) route=route-\(value) "
                + "upstream=upstream-\(value % 5) 789us id=0123456789abcdef\n"
        }
        let text = bench.text
        #expect(text == expected)
    }
}
