import Testing

@testable import MartletCommands

@Suite struct `Responses of the admin listener` {
    static let responses: [(String, Int?, String)] = [
        ("HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody", 200, "body"), ("HTTP/1.1 503 X\r\n\r\n", 503, ""),
        ("HTTP/1.1 200 OK\r\nA: b\r\n", nil, ""), ("HTTP/1.1 2x0 OK\r\n\r\n", nil, ""),
        ("HTTP/1.1 999 OK\r\n\r\n", nil, ""),
        ("", nil, ""), ("SSH-2.0\r\n\r\n", nil, ""), ("HTTP/1.1 ", nil, ""),
    ]

    @Test(arguments: responses) func `a response is parsed or rejected`(text: String, status: Int?, body: String) {
        let response = AdminClient.parse(Array(text.utf8))
        #expect(response?.status == status)
        if status != nil { #expect(response?.body == Array(body.utf8)) }
    }

    @Test func `readiness is shown in one line`() {
        let body = """
            {"status":"degraded","checks":[{"name":"store","state":"down","detail":"connection refused"},\
            {"name":"provider.apple","state":"unavailable","detail":"detail of apple"},\
            {"name":"provider.other","state":"ready","detail":"detail of other"}]}
            """
        #expect(
            HealthCommand.line(.init(status: 200, body: Array(body.utf8)))
                == "degraded: store down (connection refused), provider.apple unavailable (detail of apple)")
        let ready = Array(#"{"status":"ready","checks":[]}"#.utf8)
        #expect(HealthCommand.line(.init(status: 200, body: ready)) == "ready")
        #expect(HealthCommand.line(.init(status: 503, body: ready)) == nil)
        #expect(HealthCommand.line(.init(status: 502, body: Array("<html>".utf8))) == nil)
        #expect(HealthCommand.line(.init(status: 500, body: [])) == nil)
    }
}
