import MartletCore
import MartletFetch
import MartletTesting
import Testing

private func withFetcher<Result>(
    caFile: String? = nil, _ body: (HTTPFetcher) async throws -> Result
) async throws -> Result {
    var options = FetchOptions()
    options.caFile = caFile
    let fetcher = try HTTPFetcher(options)
    defer { fetcher.shutdown() }
    return try await body(fetcher)
}

extension HTTPFetcher {
    fileprivate func code(
        _ url: String, for purpose: FetchPurpose = .issuerKeys, timeout: Duration = .seconds(10),
        maximumBytes: Int = 1000
    ) async -> ErrorCode? {
        do {
            _ = try await get(url, for: purpose, timeout: timeout, maximumBytes: maximumBytes)
            return nil
        } catch {
            return error.code
        }
    }
}

@Suite(.timeLimit(.minutes(2))) struct HTTPFetcherTests {
    @Test func `reads a document and says who it is`() async throws {
        let server = try ScriptedUpstream { try $0.respond(200, body: "{\"keys\":[]}") }
        try await withFetcher { fetcher in
            let response = try await fetcher.get(
                server.url + "/keys?a=b", for: .issuerKeys, timeout: .seconds(10), maximumBytes: 11,
                headers: [("X-One", "1")])
            #expect(response.status == 200 && response.body == Array("{\"keys\":[]}".utf8))
        }
        let request = try server.onlyRequest()
        #expect(request.startLine == "GET /keys?a=b HTTP/1.1")
        #expect(request["user-agent"] == "martlet" && request["x-one"] == "1" && request["accept-encoding"] == nil)
    }

    @Test(arguments: [201, 204, 400, 401, 404, 500, 503])
    func `every status but a redirect is a response`(status: Int) async throws {
        let server = try ScriptedUpstream { try $0.respond(status, body: status == 204 ? "" : "x") }
        try await withFetcher { fetcher in
            let response = try await fetcher.get(server.url, for: .issuerKeys, timeout: .seconds(10), maximumBytes: 10)
            #expect(response.status == status)
        }
    }

    @Test func `tells the pause that a response asks for`() async throws {
        let cases: [(String, Duration?)] = [
            ("17", .seconds(17)), ("0", nil), ("soon", nil), ("-5", nil), ("999999999999", .seconds(86_400)),
            ("99999999999999999999999999", nil),
        ]
        for (text, pause) in cases {
            let server = try ScriptedUpstream { try $0.respond(429, [("Retry-After", text)]) }
            try await withFetcher { fetcher in
                let response = try await fetcher.get(
                    server.url, for: .issuerKeys, timeout: .seconds(10), maximumBytes: 10)
                // libcurl takes the longest number for one that does not fit.
                #expect(response.retryAfter == pause || (pause == nil && response.retryAfter == .seconds(86_400)))
            }
        }
    }

    @Test(arguments: [301, 302, 303, 307, 308])
    func `a redirect is a failure and is not followed`(status: Int) async throws {
        let target = try ScriptedUpstream()
        let server = try ScriptedUpstream { try $0.respond(status, [("Location", target.url)]) }
        try await withFetcher { fetcher in #expect(await fetcher.code(server.url) == .fetchRedirected) }
        #expect(target.requests.isEmpty)
    }

    @Test(arguments: [false, true])
    func `a body over the bound is a failure, announced or not`(isChunked: Bool) async throws {
        let server = try ScriptedUpstream { exchange in
            guard isChunked else { return try exchange.respond(200, body: String(repeating: "x", count: 1001)) }
            try exchange.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in 0..<100 { try exchange.send("64\r\n" + String(repeating: "x", count: 100) + "\r\n") }
            try exchange.send("0\r\n\r\n")
        }
        try await withFetcher { fetcher in
            #expect(await fetcher.code(server.url, maximumBytes: 1000) == .fetchTooLarge)
            #expect(await fetcher.code(server.url, maximumBytes: 20_000) == nil)
        }
    }

    @Test func `posts a body with its type, and takes a status without its body`() async throws {
        let server = try ScriptedUpstream { try $0.respond(202, body: String(repeating: "x", count: 100_000)) }
        try await withFetcher { fetcher in
            var call = HTTPCall(
                server.url + "/hook", content: .body([0, 1, 0xFF], type: "application/test"), headers: [("X-One", "1")],
                timeout: .seconds(10), maximumBytes: 0, isRepeatable: true)
            call.discardsBody = true
            let response = try await fetcher.send(call, for: .webhook("a"))
            #expect(response.status == 202 && response.body.isEmpty)
        }
        let request = try server.onlyRequest()
        #expect(request.startLine == "POST /hook HTTP/1.1" && request.body == [0, 1, 0xFF])
        #expect(request.all("content-type") == ["application/test"] && request["x-one"] == "1")
    }

    @Test func `a head without end is a failure`() async throws {
        let server = try ScriptedUpstream { exchange in
            try exchange.send("HTTP/1.1 200 OK\r\n")
            for number in 0..<200 { try exchange.send("X-\(number): \(String(repeating: "x", count: 1000))\r\n") }
            try exchange.send("Content-Length: 0\r\n\r\n")
        }
        try await withFetcher { fetcher in #expect(await fetcher.code(server.url) == .fetchTooLarge) }
    }

    @Test(arguments: ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"])
    func `a server that is slow at any point ends at the deadline`(start: String) async throws {
        let server = try ScriptedUpstream { exchange in
            try exchange.send(start)
            _ = exchange.waitForEnd()
        }
        try await withFetcher { fetcher in
            let begin = Stopwatch()
            #expect(await fetcher.code(server.url, timeout: .milliseconds(200)) == .fetchTimeout)
            #expect(begin.undisturbed < .seconds(30))
        }
    }

    @Test(arguments: [
        "", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    ])
    func `a truncated response is a failure`(start: String) async throws {
        let server = try ScriptedUpstream { exchange in
            try exchange.send(start)
            exchange.closes = true
        }
        try await withFetcher { fetcher in #expect(await fetcher.code(server.url) == .fetchCut) }
    }

    @Test func `what is not HTTP is a failure`() async throws {
        let server = try ScriptedUpstream { exchange in
            try exchange.send("SSH-2.0-OpenSSH_9.2\r\n")
            exchange.closes = true
        }
        try await withFetcher { fetcher in #expect(await fetcher.code(server.url) == .fetchFailed) }
    }

    @Test func `a closed port is an immediate failure`() async throws {
        let port = try refusedPort()
        try await withFetcher { fetcher in
            #expect(await fetcher.code("http://127.0.0.1:\(port)/") == .fetchUnreachable)
            #expect(await fetcher.code("http://example.com/") == .fetchInsecure)
        }
    }

    @Test func `keeps the connection for the next request`() async throws {
        let server = try ScriptedUpstream()
        try await withFetcher { fetcher in
            for _ in 0..<5 {
                _ = try await fetcher.get(server.url, for: .issuerKeys, timeout: .seconds(10), maximumBytes: 10)
            }
        }
        #expect(server.requests.count == 5 && server.acceptedConnections == 1)
    }

    @Test func `posts a form`() async throws {
        let server = try ScriptedUpstream()
        try await withFetcher { fetcher in
            let form = HTTPCall.Content.form([("client_id", "a b"), ("code", "x&y")])
            _ = try await fetcher.send(
                HTTPCall(server.url + "/token", content: form, timeout: .seconds(10), maximumBytes: 10),
                for: .provider("p"))
        }
        let request = try server.onlyRequest()
        #expect(request.method == "POST" && request.text == "client_id=a%20b&code=x%26y")
        #expect(request["content-type"] == "application/x-www-form-urlencoded")
    }

    @Test(arguments: [("X", "a\r\nY: b"), ("X\r\nY", "a"), ("X:", "a"), ("", "a"), ("X", "")])
    func `a header that would become two is refused`(name: String, value: String) async throws {
        try await withFetcher { fetcher in
            let request = HTTPCall(
                "http://127.0.0.1:1/", headers: [(name, value)], timeout: .seconds(1), maximumBytes: 1)
            let failure = await #expect(throws: HTTPCallError.self) {
                try await fetcher.send(request, for: .provider("p"))
            }
            #expect(failure?.code == .fetchHeaderInvalid)
        }
    }

    @Test func `a cancelled task ends immediately and the connection is closed`() async throws {
        let server = try ScriptedUpstream { exchange in _ = exchange.waitForEnd() }
        try await withFetcher { fetcher in
            let task = Task { await fetcher.code(server.url, timeout: .seconds(60)) }
            while server.requests.isEmpty { try await Task.sleep(for: .milliseconds(2)) }
            task.cancel()
            #expect(await task.value == .fetchCancelled)
            while server.endedConnections == 0 { try await Task.sleep(for: .milliseconds(2)) }
            let early = Task { await fetcher.code(server.url, timeout: .seconds(60)) }
            early.cancel()
            #expect(await early.value == .fetchCancelled)
        }
    }

    @Test func `shutdown completes every request`() async throws {
        let server = try ScriptedUpstream { exchange in _ = exchange.waitForEnd() }
        let fetcher = try HTTPFetcher(FetchOptions())
        let tasks = (0..<8).map { _ in Task { await fetcher.code(server.url, timeout: .seconds(60)) } }
        while server.requests.count < 8 { try await Task.sleep(for: .milliseconds(2)) }
        fetcher.shutdown()
        var codes: [ErrorCode?] = []
        for task in tasks { codes.append(await task.value) }
        #expect(codes == [ErrorCode?](repeating: .fetchStopped, count: 8))
        #expect(await fetcher.code(server.url) == .fetchStopped)
        fetcher.shutdown()
    }

    @Test func `a flood for one purpose is refused and holds up no other`() async throws {
        let server = try ScriptedUpstream { exchange in
            if exchange.request.startLine.contains("/stuck") { _ = exchange.waitForEnd(within: .seconds(60)) }
            try exchange.respond(200, body: "ok")
        }
        let fetcher = try HTTPFetcher(FetchOptions())
        let codes = Box<[ErrorCode?]>([])
        let url = server.url + "/stuck"
        let tasks = (0..<300).map { _ in
            Task {
                let code = await fetcher.code(url, for: .provider("wechat"), timeout: .seconds(60))
                codes.withLock { $0.append(code) }
            }
        }
        while codes.value.count < 44 { try await Task.sleep(for: .milliseconds(2)) }
        while server.requests.count < 192 { try await Task.sleep(for: .milliseconds(2)) }
        for purpose in [FetchPurpose.issuerKeys, .provider("another")] {
            for _ in 0..<3 { #expect(await fetcher.code(server.url + "/quick", for: purpose) == nil) }
        }
        #expect(server.requests.count { $0.startLine.contains("/stuck") } == 192)
        fetcher.shutdown()
        for task in tasks { await task.value }
        #expect(codes.value.filter { $0 == .fetchOverloaded }.count == 44)
        #expect(codes.value.filter { $0 == .fetchStopped }.count == 256)
    }

    @Test func `a slot is kept until it is let go of, and is good for one request at a time`() async throws {
        let server = try ScriptedUpstream { exchange in
            if exchange.request.startLine.contains("/stuck") { _ = exchange.waitForEnd(within: .seconds(60)) }
            try exchange.respond(200, body: "ok")
        }
        try await withFetcher { fetcher in
            var slots: [FetchSlot] = []
            for _ in 0..<48 { slots.append(try await fetcher.reserve(.issuerKeys, within: .seconds(1))) }
            let late = await #expect(throws: HTTPCallError.self) {
                try await fetcher.reserve(.issuerKeys, within: .milliseconds(50))
            }
            #expect(late?.code == .fetchTimeout)
            let last = slots.popLast()
            let slot = try #require(last)
            let request = HTTPCall(server.url + "/stuck", timeout: .seconds(60), maximumBytes: 10)
            let first = Task { try await fetcher.send(request, in: slot) }
            while server.requests.isEmpty { try await Task.sleep(for: .milliseconds(2)) }
            let second = await #expect(throws: HTTPCallError.self) {
                try await fetcher.send(
                    HTTPCall(server.url, timeout: .seconds(5), maximumBytes: 10), in: slot)
            }
            #expect(second?.code == .fetchOverloaded)
            first.cancel()
            _ = await first.result
            let quick = HTTPCall(server.url, timeout: .seconds(5), maximumBytes: 10)
            #expect(try await fetcher.send(quick, in: slot).status == 200)
            let waiting = Task { await fetcher.code(server.url) }
            slots.removeAll()
            #expect(await waiting.value == nil)
        }
    }
}

@Suite(.timeLimit(.minutes(2))) struct HTTPFetcherTLSTests {
    /// A web server of the openssl command.
    private final class TLSServer: Sendable {
        let port: UInt16
        private let folder: TemporaryFolder
        private let process: ChildProcess

        init(_ certificate: CertificateAuthority.Issued, _ more: [String] = []) throws {
            folder = try TemporaryFolder()
            let port = try refusedPort()
            self.port = port
            process = try ChildProcess(
                try Executable.named("openssl"),
                [
                    "s_server", "-accept", "127.0.0.1:\(port)", "-cert", certificate.certificateFile, "-key",
                    certificate.keyFile, "-www", "-quiet",
                ] + more, output: folder)
            try waitUntil("openssl listens") { (try? RawSocket(connectingTo: .loopback(port))) != nil }
        }

        deinit { process.kill(9) }
    }

    @Test func `reads from a server that it can verify by name and by address`() async throws {
        let authority = try CertificateAuthority()
        let server = try TLSServer(try authority.issue("good", ["DNS:localhost", "IP:127.0.0.1"]))
        try await withFetcher(caFile: authority.certificateFile) { fetcher in
            for host in ["localhost", "127.0.0.1"] {
                #expect(await fetcher.code("https://\(host):\(server.port)/", maximumBytes: 100_000) == nil)
            }
        }
    }

    @Test func `refuses servers that it cannot verify`() async throws {
        let authority = try CertificateAuthority()
        let stranger = try CertificateAuthority(name: "Stranger")
        let cases = [
            try stranger.issue("s", ["DNS:localhost"]), try authority.issue("other", ["DNS:example.com"]),
            try authority.issue("old", ["DNS:localhost"], days: -1),
        ]
        for certificate in cases {
            let server = try TLSServer(certificate)
            try await withFetcher(caFile: authority.certificateFile) { fetcher in
                #expect(await fetcher.code("https://localhost:\(server.port)/") == .fetchUntrusted)
            }
        }
    }

    @Test func `does not trust a private authority unless told to`() async throws {
        let authority = try CertificateAuthority()
        let server = try TLSServer(try authority.issue("good", ["DNS:localhost"]))
        try await withFetcher { fetcher in
            #expect(await fetcher.code("https://localhost:\(server.port)/") == .fetchUntrusted)
        }
    }

    @Test func `https to a server without TLS is a failure`() async throws {
        let server = try ScriptedUpstream(readsBodies: false)
        try await withFetcher { fetcher in
            let code = await fetcher.code("https://127.0.0.1:\(server.port)/", timeout: .seconds(2))
            #expect([.fetchTLSFailed, .fetchTimeout, .fetchCut].contains(code))
        }
        #expect(server.requests.isEmpty)
    }

    @Test func `a CA file that cannot be read is a failure`() async throws {
        let authority = try CertificateAuthority()
        let server = try TLSServer(try authority.issue("good", ["DNS:localhost"]))
        try await withFetcher(caFile: "/nowhere.pem") { fetcher in
            #expect(await fetcher.code("https://localhost:\(server.port)/") == .fetchTrustUnreadable)
        }
    }

    @Test func `failures name the host and never the query`() async throws {
        let port = try refusedPort()
        try await withFetcher { fetcher in
            let url = "http://127.0.0.1:\(port)/path?secret=s3cr3t"
            let failure = await #expect(throws: HTTPCallError.self) {
                try await fetcher.get(url, for: .issuerKeys, timeout: .seconds(5), maximumBytes: 1)
            }
            #expect(failure?.description.contains("127.0.0.1") == true)
            #expect(failure?.description.contains("s3cr3t") == false && failure?.description.contains("path") == false)
        }
    }
}
