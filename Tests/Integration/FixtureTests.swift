import MartletTesting
import Testing

/// The means of the tests, tested: a fixture that lies makes every test behind it worthless.
@Suite struct `Fixtures` {
    @Test func `a scripted upstream records what it got and responds as its script says`() throws {
        let upstream = try ScriptedUpstream { exchange in
            try exchange.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nT: 1\r\n\r\n")
        }
        let client = try HTTPClient(to: upstream.endpoint)
        try client.send("POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX: y\r\n\r\n")
        let response = try client.response()
        #expect(response.text == "abc" && response.end == .complete)
        #expect(response.trailers.map(\.description) == ["T: 1"])
        let request = try upstream.onlyRequest()
        #expect(request.text == "hi" && request["X"] == nil && request.trailers.count == 1)
        #expect(request.rawBody == Array("2\r\nhi\r\n0\r\nX: y\r\n\r\n".utf8))
    }

    @Test func `a response that ends too early is seen as truncated`() throws {
        let upstream = try ScriptedUpstream { exchange in
            try exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc")
            exchange.closes = true
        }
        let client = try HTTPClient(to: upstream.endpoint)
        let response = try client.exchange("GET", "/")
        #expect(response.end == .truncated && response.text == "abc")
    }

    @Test func `redis-server starts, responds, dies and comes back`() throws {
        let redis = try RedisServer()
        #expect(try redis.command("SET a b") == "+OK\r\n")
        try redis.stop()
        #expect(throws: TestFailure.self) { try redis.command("GET a") }
        try redis.restart()
        #expect(try redis.command("GET a") == "$-1\r\n")
    }

    @Test func `nginx starts and serves`() throws {
        let nginx = try NginxUpstream(files: ["a.txt": "hello"])
        #expect(try HTTPClient(to: .loopback(nginx.port)).exchange("GET", "/files/a.txt").text == "hello")
    }

    @Test(arguments: [SigningKey.Kind.rsa(bits: 2048), .p256])
    func `a signature of ours is good in the eyes of the openssl command`(kind: SigningKey.Kind) throws {
        let key = try SigningKey("k", kind)
        let folder = try TemporaryFolder()
        let signature = try key.signature(over: Array("message".utf8))
        #expect(signature.count == (try key.jwk()["kty"] == "EC" ? 64 : 256))
        guard case .rsa = kind else { return }
        try folder.write("message", to: "m")
        try folder.write(String(decoding: try key.publicPEM(), as: UTF8.self), to: "k")
        try folder.write(bytes: signature, to: "s")
        let arguments = [
            "dgst", "-sha256", "-verify", folder.file("k"), "-signature", folder.file("s"), folder.file("m"),
        ]
        #expect(try run(try Executable.named("openssl"), arguments).ending == .exited(0))
    }

    @Test func `the simulated Apple serves its keys and counts`() throws {
        let apple = try AppleFixture()
        let response = try HTTPClient(
            to: .loopback(Endpoint(text: String(apple.url.dropFirst(7).prefix { $0 != "/" })).port)
        )
        .exchange("GET", "/auth/keys")
        #expect(response.status == 200 && apple.fetches == 1)
        #expect((response.object["keys"] as? [[String: String]])?.first?["kid"] == "test-key-1")
        #expect(try apple.token().split(separator: ".").count == 3)
    }
}
