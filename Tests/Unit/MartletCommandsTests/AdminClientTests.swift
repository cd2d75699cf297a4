import Testing

@testable import MartletCommands

@Suite struct `Responses of the admin listener` {
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
