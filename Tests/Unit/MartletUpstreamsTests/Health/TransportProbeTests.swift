import MartletCore
import MartletFetch
import MartletTesting
import Testing

@testable import MartletUpstreams

/// Waits for the first result of a probe that is repeated every 50 ms.
private func firstResult(_ request: ProbeRequest) throws -> ProbeResult {
    let changes = Box<[HealthChange]>([])
    let monitor = try HealthMonitor { new in changes.withLock { $0 += new } }
    defer { monitor.shutdown() }
    monitor.follow([
        HealthTarget(
            id: 1, upstream: "api", request: request, interval: .milliseconds(50), jitter: 0,
            thresholds: HealthThresholds(healthy: 1, unhealthy: 1))
    ])
    try waitUntil("there is a result") { monitor.counts["api"]?.successes ?? 0 > 0 || !changes.value.isEmpty }
    return changes.value.first.map { .failure($0.reason) } ?? .success("")
}

@Suite struct `Probes over TLS and HTTP/2` {
    private func request(_ port: UInt16, tls: EndpointTLS? = nil, version: EndpointVersion) -> ProbeRequest {
        var request = ProbeRequest(to: .tcp(address: "127.0.0.1", port: port), host: "api.internal")
        (request.tls, request.version, request.timeout) = (tls, version, .seconds(10))
        return request
    }

    @Test func `the certificate is verified as the upstream's settings say`() throws {
        let authority = try CertificateAuthority()
        let nginx = try NginxUpstream(certificate: try authority.issue("server", ["DNS:api.internal"]))
        var tls = EndpointTLS(serverName: "api.internal")
        func result(_ version: EndpointVersion = .http1) throws -> ProbeResult {
            try firstResult(request(nginx.secure, tls: tls, version: version))
        }
        #expect(try result() == .failure("certificate not trusted"))
        tls.authorityFile = authority.certificateFile
        #expect(try result() == .success(""))
        #expect(try result(.http2) == .success(""))
        tls.serverName = "other.internal"
        #expect(try result() == .failure("certificate not trusted"))
        tls.verifies = false
        #expect(try result() == .success(""))
        tls = EndpointTLS(serverName: "api.internal")
        tls.authorityFile = "/nonexistent.pem"
        #expect(try result() == .failure("ca_file cannot be read"))
    }

    @Test func `a client certificate is shown`() throws {
        let authority = try CertificateAuthority()
        let server = try authority.issue("server", ["IP:127.0.0.1"])
        let client = try authority.issue("client", ["DNS:client"])
        let nginx = try NginxUpstream(certificate: server, clientAuthority: authority.certificateFile)
        var tls = EndpointTLS(serverName: "127.0.0.1")
        tls.authorityFile = authority.certificateFile
        (tls.certificateFile, tls.keyFile) = (client.certificateFile, client.keyFile)
        #expect(try firstResult(request(nginx.secure, tls: tls, version: .http1)) == .success(""))
        tls.keyFile = server.keyFile
        #expect(
            try firstResult(request(nginx.secure, tls: tls, version: .http1))
                == .failure("certificate or key cannot be read"))
    }

    @Test func `HTTP/2 with prior knowledge, and servers that lack it`() throws {
        let nginx = try NginxUpstream()
        #expect(try firstResult(request(nginx.frames, version: .http2)) == .success(""))
        #expect(try firstResult(request(nginx.port, version: .http2)) != .success(""))
        let upstream = try ScriptedUpstream()
        #expect(try firstResult(request(upstream.port, version: .http2)) != .success(""))
        // Clear text where TLS is expected, and the other way round.
        #expect(
            try firstResult(request(nginx.port, tls: EndpointTLS(serverName: "a"), version: .http1))
                == .failure("TLS handshake failed"))
    }
}

@Suite struct `Probes of gRPC health services` {
    /// A server that sends the frames of one response when the request on the first stream is complete.
    private static func server(_ frames: [UInt8]) throws -> ScriptedUpstream {
        try ScriptedUpstream(readsBodies: false) { exchange in
            // The first line of the preface reads like a head, and its second is 6 bytes.
            var bytes = exchange.pending
            while !isComplete(bytes.dropFirst(6)) { bytes += try exchange.socket.receive() }
            try exchange.send(frame(4, 0, stream: 0, []) + frames)
            _ = exchange.waitForEnd()
        }
    }

    /// Whether DATA with END_STREAM is among the frames.
    private static func isComplete(_ bytes: ArraySlice<UInt8>) -> Bool {
        var rest = bytes
        while rest.count >= 9 {
            let head = Array(rest.prefix(9))
            let length = Int(head[1]) << 8 | Int(head[2])
            guard rest.count >= 9 + length else { return false }
            if head[3] == 0, head[4] & 1 == 1 { return true }
            rest = rest.dropFirst(9 + length)
        }
        return false
    }

    private static func frame(_ type: UInt8, _ flags: UInt8, stream: UInt8, _ payload: [UInt8]) -> [UInt8] {
        [0, UInt8(payload.count >> 8), UInt8(payload.count & 255), type, flags, 0, 0, 0, stream] + payload
    }

    private static func field(_ name: String, _ value: String) -> [UInt8] {
        [0, UInt8(name.utf8.count)] + Array(name.utf8) + [UInt8(value.utf8.count)] + Array(value.utf8)
    }

    /// Head, message and trailers.
    private static func response(state: UInt8, status: String) -> [UInt8] {
        frame(1, 4, stream: 1, [0x88] + field("content-type", "application/grpc"))
            + frame(0, 0, stream: 1, [0, 0, 0, 0, 2, 8, state])
            + frame(1, 5, stream: 1, field("grpc-status", status))
    }

    static let cases: [([UInt8], ProbeResult)] = [
        (response(state: 1, status: "0"), .success("")),
        (response(state: 2, status: "0"), .failure("NOT_SERVING")),
        (response(state: 1, status: "14"), .failure("grpc-status 14")),
        // Trailers alone: the service is not there.
        (
            frame(1, 5, stream: 1, [0x88] + field("grpc-status", "12")), .failure("grpc-status 12")
        ),
        (frame(1, 5, stream: 1, [0x88]), .failure("no grpc-status")),
        // 404 is in the static table.
        (frame(1, 5, stream: 1, [0x8D]), .failure("status 404")),
    ]

    @Test(arguments: cases) func `serves with status 0 and SERVING alone`(_ frames: [UInt8], result: ProbeResult) throws
    {
        let server = try Self.server(frames)
        var request = ProbeRequest(to: .tcp(address: "127.0.0.1", port: server.port), host: "api.internal")
        (request.version, request.isGRPC, request.timeout) = (.http2, true, .seconds(10))
        #expect(try firstResult(request) == result)
    }

    @Test func `a server that resets the stream or says nothing`() throws {
        let resetting = try Self.server(Self.frame(3, 0, stream: 1, [0, 0, 0, 7]))
        var request = ProbeRequest(to: .tcp(address: "127.0.0.1", port: resetting.port), host: "x")
        (request.version, request.isGRPC, request.timeout) = (.http2, true, .milliseconds(500))
        #expect(try firstResult(request) != .success(""))
        let silent = try Self.server([])
        request.destination = .tcp(address: "127.0.0.1", port: silent.port)
        #expect(try firstResult(request) == .failure("no response within 500 ms"))
    }
}
