import MartletCore
import MartletProvider
import Testing

@testable import MartletResponder

@Suite struct LocalResponseTests {
    @Test func `a handler gets a quarter of a MiB, and has ten seconds`() {
        #expect(LocalLimits.bodyBytes == 262_144 && LocalLimits.ownFields == 256)
        #expect(LocalLimits.timeout == .seconds(10))
    }

    @Test func `a text has its media type, and is not cached`() {
        let response = LocalResponse.text(503, "text/plain", "not ready\u{e9}")
        #expect(response.status == 503 && response.body == Array("not ready\u{e9}".utf8))
        #expect(response.fields.map(\.name) == ["Content-Type", "Cache-Control"])
        #expect(response.fields.map(\.value) == ["text/plain", "no-store"])
        #expect(response.failure?.status == nil && response.reason == nil)
    }

    @Test func `a rejection leaves the response to the gateway`() {
        let response = LocalResponse(refusing: .throttled("test.reason", retryAfter: 7))
        #expect(response.status == 429 && response.fields.isEmpty && response.body.isEmpty && response.reason == nil)
        #expect(response.failure?.reason == "test.reason" && response.failure?.retryAfter == 7)
    }
}

@Suite struct LocalRequestTests {
    private func request(_ fields: [(name: String, value: String)]) -> LocalRequest {
        LocalRequest(
            method: "GET", path: "/", query: "", fields: fields, body: [], bodyBytes: 0, client: "127.0.0.1",
            requestID: "r1")
    }

    @Test func `a request may have no network, no address and no local address`() {
        let request = request([])
        #expect(request.network == nil && request.address.isEmpty && request.local == nil)
    }

    @Test func `a field is found by its whole name`() {
        let request = request([("X-Ab", "1"), ("X-A", "2"), ("Empty", "")])
        #expect(request.field("X-A") == "2" && request.field("x-ab") == "1" && request.field("EMPTY") == "")
        #expect(request.field("X") == nil && request.field("") == nil && request.field("X-Abc") == nil)
    }
}

@Suite struct EchoHandlerTests {
    /// The body of the response to a request.
    private func echo(
        method: String = "GET", path: String = "/", query: String = "", fields: [(name: String, value: String)] = [],
        body: [UInt8] = [], bodyBytes: Int = 0
    ) async -> String {
        let response = await EchoHandler.respond(
            LocalRequest(
                method: method, path: path, query: query, fields: fields, body: body, bodyBytes: bodyBytes,
                client: "127.0.0.1", requestID: "r1"))
        return String(decoding: response.body, as: UTF8.self)
    }

    @Test func `the response is a line of JSON`() async {
        let response = await EchoHandler.respond(
            LocalRequest(
                method: "GET", path: "/", query: "", fields: [], body: [], bodyBytes: 0, client: "127.0.0.1",
                requestID: "r1"))
        #expect(response.status == 200 && response.failure?.status == nil && response.reason == nil)
        #expect(response.fields.map(\.name) == ["Content-Type"])
        #expect(response.fields.map(\.value) == ["application/json"])
        let text = String(decoding: response.body, as: UTF8.self)
        #expect(text == #"{"method":"GET","path":"/","query":"","headers":{},"body":"","body_bytes":0}"# + "\n")
    }

    @Test func `headers have lower-case names in the order in which they came first`() async {
        let text = await echo(fields: [("X-B", "1"), ("Host", "a"), ("x-b", ""), ("Accept", "*/*"), ("HOST", "c")])
        let headers = #""headers":{"x-b":["1",""],"host":["a","c"],"accept":"*/*"},"#
        #expect(text == #"{"method":"GET","path":"/","query":"",\#(headers)"body":"","body_bytes":0}"# + "\n")
    }

    @Test func `three equal fields are one array, and names are compared whole`() async {
        let text = await echo(fields: [("A", "1"), ("Aa", "2"), ("a", "3"), ("A", "1")])
        #expect(text.contains(#""headers":{"a":["1","3","1"],"aa":"2"}"#))
    }

    @Test func `text is escaped, and bytes that are not UTF-8 are replaced`() async {
        let text = await echo(
            method: "P\"", path: "/\u{e9}", query: "a=\\&b", fields: [("X", "\t\u{1}")],
            body: [0x61, 0xFF, 0x0A, 0x62], bodyBytes: 4)
        let expected =
            #"{"method":"P\"","path":"/\#u{e9}","query":"a=\\&b","headers":{"x":"\t\u0001"},"#
            + #""body":"a\#u{fffd}\nb","body_bytes":4}"# + "\n"
        #expect(text == expected)
    }

    @Test func `a body that was cut has its whole length`() async {
        let text = await echo(body: Array("abc".utf8), bodyBytes: 1_000_000)
        #expect(text.hasSuffix(#","body":"abc","body_bytes":1000000}"# + "\n"))
    }
}

@Suite struct ListenerHandlerTests {
    private func accepts(_ path: String, _ handler: ListenerHandler) -> Bool {
        let bytes = Array(path.utf8)
        return unsafe bytes.withUnsafeBufferPointer { unsafe handler.handles($0) }
    }

    private func handler(_ path: String?) -> ListenerHandler {
        ListenerHandler(path: path) { request in .text(200, "text/plain", request.path) }
    }

    @Test(arguments: ["/healthz?a=b", "/healthz#", "/%68ealthz", "//healthz", "/healthz/", " /healthz", "/healthy"])
    func `a path is compared as it was received`(path: String) {
        #expect(!accepts(path, handler("/healthz")) && accepts(path, handler(path)) && accepts(path, handler(nil)))
    }

    @Test func `an empty path is not the same as no path`() {
        #expect(accepts("", handler("")) && !accepts("/", handler("")) && accepts("/", handler(nil)))
    }

    @Test func `paths are compared by their bytes`() {
        let (composed, decomposed) = ("/\u{e9}", "/e\u{301}")
        #expect(composed == decomposed)
        #expect(accepts(composed, handler(composed)) && !accepts(decomposed, handler(composed)))
    }

    @Test func `a request gets the response of the handler`() async {
        let request = LocalRequest(
            method: "GET", path: "/a", query: "", fields: [], body: [], bodyBytes: 0, client: "127.0.0.1",
            requestID: "r1")
        let response = await handler("/healthz").respond(request)
        #expect(response.status == 200 && response.body == Array("/a".utf8))
    }
}
