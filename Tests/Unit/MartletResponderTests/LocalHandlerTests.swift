import MartletJSON
import Testing

@testable import MartletResponder

@Suite struct LocalHandlerTests {
    private func accepts(_ path: String, _ handler: ListenerHandler) -> Bool {
        let bytes = Array(path.utf8)
        return unsafe bytes.withUnsafeBufferPointer { unsafe handler.handles($0) }
    }

    @Test func `a handler of one path accepts no other`() {
        let one = ListenerHandler(path: "/healthz") { _ in .text(200, "text/plain", "ready") }
        #expect(accepts("/healthz", one))
        for path in ["", "/", "/health", "/healthz/", "/Healthz"] { #expect(!accepts(path, one), "\(path)") }
        let all = ListenerHandler { _ in .text(200, "text/plain", "ready") }
        #expect(accepts("/healthz", all) && accepts("", all))
    }

    @Test func `the echo shows the request, and repeated fields as an array`() async throws {
        let request = LocalRequest(
            method: "PUT", path: "/a", query: "b=1",
            fields: [("X-Same", "1"), ("Other", "2"), ("x-same", "3"), ("X-SAME", "4")], body: Array("text".utf8),
            bodyBytes: 5, client: "127.0.0.1", requestID: "r1")
        let response = await EchoHandler.respond(request)
        #expect(response.status == 200 && response.failure == nil)
        let limits = JSONLimits(maximumDepth: 8, maximumBytes: 4096)
        let object = try #require(try JSON.parse(response.body, limits: limits).object)
        #expect(object["method"]?.string == "PUT" && object["path"]?.string == "/a" && object["query"]?.string == "b=1")
        #expect(object["body"]?.string == "text" && object["body_bytes"]?.int64 == 5)
        let headers = try #require(object["headers"]?.object)
        #expect(headers["x-same"]?.array == ["1", "3", "4"] && headers["other"]?.string == "2")
    }

    @Test func `fields are found in any case, the first of several`() {
        let request = LocalRequest(
            method: "GET", path: "/", query: "", fields: [("X-A", "1"), ("x-a", "2")], body: [], bodyBytes: 0,
            client: "127.0.0.1", requestID: "r1")
        #expect(request.field("x-A") == "1" && request.field("x-b") == nil)
    }
}
