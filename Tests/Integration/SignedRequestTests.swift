import Foundation
import MartletCore
import MartletCrypto
import MartletTesting
import Testing

/// A partner who signs its requests (RFC 9421).
private struct Partner {
    static let secret = [UInt8](repeating: 9, count: 32)

    var key = "acme"
    var authority = "localhost"
    var nonce: String?
    var sign: ([UInt8]) throws -> [UInt8] = { HMACSHA256.authenticate($0, key: Secret(Self.secret)) }

    /// The fields of a signed request; with a body, they cover its digest.
    /// - Parameter digest: `nil` for that of the body.
    func fields(
        _ method: String, _ path: String, query: String = "", body: [UInt8]? = nil, digest: String? = nil
    ) throws -> [(String, String)] {
        var lines = [("@method", method), ("@authority", authority), ("@path", path), ("@query", "?\(query)")]
        var fields: [(String, String)] = []
        if let digest = digest ?? body.map(Self.digest) {
            lines.append(("content-digest", digest))
            fields.append(("Content-Digest", digest))
        }
        var parameters = ";created=\(unixNow());keyid=\"\(key)\""
        if let nonce { parameters += ";nonce=\"\(nonce)\"" }
        let list = "(" + lines.map { "\"\($0.0)\"" }.joined(separator: " ") + ")" + parameters
        let base = lines.map { "\"\($0.0)\": \($0.1)\n" }.joined() + "\"@signature-params\": \(list)"
        let signature = Base64.encode(try sign(Array(base.utf8)), padding: .required)
        return fields + [("Signature-Input", "sig=\(list)"), ("Signature", "sig=:\(signature):")]
    }

    static func digest(_ body: [UInt8]) -> String {
        "sha-256=:\(Base64.encode(SHA256.digest(body), padding: .required)):"
    }
}

/// Requests that a partner signs, with their bodies (`kind: signed`).
@Suite(.timeLimit(.minutes(2))) struct `Signed requests` {
    private static let keys = """
        partner:
          kind: signed
          keys:
            acme: { algorithm: hmac-sha256, secret: "\(Base64.encode(Partner.secret, padding: .required))", subject: acme }
        """

    private func withGateway(
        more: String = "", server: String = "limits: { body_bytes: 10MiB }", extra: String = "",
        script: @escaping ScriptedUpstream.Script = { try $0.respond(200, body: "ok") }, readsBodies: Bool = true,
        _ body: (Gateway, ScriptedUpstream) throws -> Void
    ) throws {
        let upstream = try ScriptedUpstream(readsBodies: readsBodies, script)
        let routes = "- { name: all, match: { path: /** }, auth: { providers: [partner] }, upstream: api }"
        var config = GatewayConfig(
            endpoints: [upstream.url], providers: Self.keys + more, server: server, routes: routes)
        config.more = extra
        try withMartlet(config.text) { try body($0, upstream) }
    }

    private func expectReason(_ reason: String, of response: HTTPMessage, at gateway: Gateway) throws {
        let id = response["X-Request-Id"] ?? ""
        try waitUntil("\(reason) is logged") {
            gateway.log.contains { $0["request_id"] == id && $0["reason"] == reason }
        }
    }

    @Test func `give upstreams the identity alone, and each signature is checked`() throws {
        try withGateway { gateway, upstream throws in
            let client = try gateway.connect()
            let fields = try Partner().fields("GET", "/a", query: "b=1")
            for _ in 0..<2 { #expect(try client.exchange("GET", "/a?b=1", fields).status == 200) }
            let received = try #require(upstream.requests.last)
            #expect(received["X-Auth-Subject"] == "partner:acme")
            #expect(received["Signature"] == nil && received["Signature-Input"] == nil)
            // What was accepted for one request is not reused for another one.
            for (method, target) in [("GET", "/a?b=2"), ("GET", "/other?b=1"), ("DELETE", "/a?b=1"), ("GET", "/a")] {
                let response = try client.exchange(method, target, fields)
                expectRejection(response, 401, "credential_invalid")
                try expectReason("signature.invalid", of: response, at: gateway)
            }
            let twice = fields.map { ($0.0, "\($0.1), \($0.1.replacing("sig=", with: "x="))") }
            let repeated = try client.exchange("GET", "/a?b=1", twice)
            expectRejection(repeated, 400, "request_invalid")
            try expectReason("signature.repeated", of: repeated, at: gateway)
            let two = try client.exchange("GET", "/a?b=1", fields + bearer("t"))
            expectRejection(two, 400, "request_invalid")
            #expect(upstream.requests.count == 2)
        }
    }

    @Test func `are verified with public keys`() throws {
        let folder = try TemporaryFolder()
        let (own, shared, message) = (folder.file("own.pem"), folder.file("public.pem"), folder.file("message"))
        try CertificateAuthority.openssl(["genpkey", "-algorithm", "ed25519", "-out", own])
        try CertificateAuthority.openssl(["pkey", "-in", own, "-pubout", "-out", shared])
        let partner = Partner(key: "beta") { base throws in
            try Data(base).write(to: URL(fileURLWithPath: message))
            let output = folder.file("signature")
            try CertificateAuthority.openssl(
                ["pkeyutl", "-sign", "-rawin", "-inkey", own, "-in", message, "-out", output])
            return Array(try Data(contentsOf: URL(fileURLWithPath: output)))
        }
        let key = "\n    beta: { algorithm: ed25519, public_key_file: \(shared), subject: beta }"
        try withGateway(more: key) { gateway, upstream throws in
            #expect(try gateway.get("/a", partner.fields("GET", "/a")).status == 200)
            #expect(upstream.requests.last?["X-Auth-Subject"] == "partner:beta")
            #expect(try gateway.get("/b", partner.fields("GET", "/a")).status == 401)
            #expect(try gateway.get("/a", Partner(key: "beta").fields("GET", "/a")).status == 401)
        }
    }

    @Test(arguments: [5, 70_000, 3 << 20])
    func `bodies arrive whole, with and without a length`(count: Int) throws {
        try withGateway { gateway, upstream throws in
            let payload = Payload.bytes(count)
            let fields = try Partner().fields("POST", "/a", body: payload)
            #expect(try gateway.exchange("POST", "/a", fields, body: payload).status == 200)
            let client = try gateway.connect()
            try client.send("POST", "/a", fields + [("Transfer-Encoding", "chunked")])
            try client.send(Payload.chunked(payload, size: 10_000))
            #expect(try client.response(to: "POST").status == 200)
            let areSame = upstream.requests.map { $0.body == payload }
            #expect(areSame == [true, true])
        }
    }

    @Test(arguments: [5, 70_000, 3 << 20])
    func `another body never reaches the upstream complete`(count: Int) throws {
        try withGateway { gateway, upstream throws in
            let payload = Payload.bytes(count)
            var other = payload
            other[count - 1] ^= 1
            let fields = try Partner().fields("POST", "/a", body: payload)
            let response = try gateway.exchange("POST", "/a", fields, body: other)
            expectRejection(response, 400, "request_invalid")
            try expectReason("digest.mismatch", of: response, at: gateway)
            let client = try gateway.connect()
            try client.send("POST", "/a", fields + [("Transfer-Encoding", "chunked")])
            try client.send(Payload.chunked(other, size: 10_000))
            expectRejection(try client.response(to: "POST"), 400, "request_invalid")
            try waitUntil("the upstream's connections are cut") { upstream.endedConnections == 2 }
            // Neither a length that is reached nor a last chunk: what the upstream has cannot be taken for a request.
            for request in upstream.requests where request["Content-Length"] != nil {
                #expect(request.body.count < count)
            }
            #expect(upstream.requests.allSatisfy { $0.end != .complete })
            // The gateway serves on.
            #expect(try gateway.exchange("POST", "/a", fields, body: payload).status == 200)
        }
    }

    @Test func `a body needs a digest that is covered, and none has the empty one`() throws {
        try withGateway { gateway, upstream throws in
            let body = Array("{}".utf8)
            let bare = try gateway.exchange("POST", "/a", Partner().fields("POST", "/a"), body: body)
            expectRejection(bare, 401, "credential_invalid")
            try expectReason("signature.digest_not_covered", of: bare, at: gateway)
            let absent = try gateway.get("/a", Partner().fields("GET", "/a", body: body))
            expectRejection(absent, 400, "request_invalid")
            try expectReason("digest.mismatch", of: absent, at: gateway)
            #expect(try gateway.get("/a", Partner().fields("GET", "/a", body: [])).status == 200)
            let unknown = try gateway.exchange(
                "POST", "/a", Partner().fields("POST", "/a", digest: "md5=:AAAA:"), body: body)
            expectRejection(unknown, 400, "request_invalid")
            try expectReason("digest.unknown_algorithm", of: unknown, at: gateway)
            #expect(upstream.requests.count == 1)
        }
    }

    @Test func `a response that has begun is cut where the body turns out to be another`() throws {
        let script: ScriptedUpstream.Script = { exchange in
            try exchange.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
            _ = exchange.waitForEnd()
        }
        try withGateway(script: script, readsBodies: false) { gateway, _ throws in
            let body = Payload.bytes(1000)
            let client = try gateway.connect()
            let fields = try Partner().fields("POST", "/a", body: body)
            try client.send("POST", "/a", fields + [("Content-Length", "1000")])
            try client.send(Array(body.dropLast()))
            guard let head = try client.reader.readHead() else { throw TestFailure("no head") }
            #expect(head.status == 200)
            try client.send([body[999] ^ 1])
            let rest = client.reader.pending + (try client.socket.receiveToEnd(within: .seconds(5)))
            #expect(!String(decoding: rest, as: UTF8.self).hasSuffix("0\r\n\r\n"))
            try waitUntil("the reason is logged") { gateway.log.contains { $0["reason"] == "digest.mismatch" } }
        }
    }

    @Test func `bodies in the frames of HTTP/2 are compared, too`() throws {
        try withGateway(server: "limits: { body_bytes: 10MiB }") { gateway, upstream throws in
            let folder = try TemporaryFolder()
            let (file, other) = (folder.file("body"), folder.file("other"))
            let payload = Payload.bytes(200_000)
            try Data(payload).write(to: URL(fileURLWithPath: file))
            try Data(payload.dropLast() + [payload[199_999] ^ 1]).write(to: URL(fileURLWithPath: other))
            let partner = Partner(authority: "\(gateway.endpoint)")
            for lengthIsKnown in [true, false] {
                for (path, status) in [(file, "200"), (other, "400")] {
                    var arguments = ["-s", "-o", "/dev/null", "-w", "%{http_code} %{http_version}"]
                    arguments += ["--http2-prior-knowledge", "-X", "POST", "http://\(gateway.endpoint)/a"]
                    arguments += lengthIsKnown ? ["--data-binary", "@\(path)"] : ["-T", "-", "-H", "Expect:"]
                    for (name, value) in try partner.fields("POST", "/a", body: payload) {
                        arguments += ["-H", "\(name): \(value)"]
                    }
                    let script = ["-c", "exec curl \"$@\" < \(path)", "curl"] + arguments
                    let result = try run("/bin/sh", script)
                    #expect(result.output == "\(status) 2", "\(lengthIsKnown) \(path) \(result)")
                }
            }
            try waitUntil("all are at the upstream") { upstream.requests.count == 4 }
            let whole = upstream.requests.map { $0.end == .complete && $0.body == payload }
            #expect(whole.filter { $0 }.count == 2)
        }
    }

    @Test func `a nonce is accepted once, and not while the store is unavailable`() throws {
        try withGateway { gateway, _ throws in
            let fields = try Partner(nonce: "n-1").fields("GET", "/a")
            #expect(try gateway.get("/a", fields).status == 200)
            let replayed = try gateway.get("/a", fields)
            expectRejection(replayed, 401, "credential_invalid")
            try expectReason("signature.replayed", of: replayed, at: gateway)
            #expect(try gateway.get("/a", Partner(nonce: "n-2").fields("GET", "/a")).status == 200)
        }
        for policy in ["cached", "deny"] {
            let store = "store: { url: \"redis://127.0.0.1:1\", on_error: \(policy) }"
            try withGateway(extra: store) { gateway, _ throws in
                let response = try gateway.get("/a", Partner(nonce: "n-1").fields("GET", "/a"))
                expectRejection(response, 503, "auth_unavailable")
                try expectReason("signature.store_unavailable", of: response, at: gateway)
                #expect(try gateway.get("/a", Partner().fields("GET", "/a")).status == 200)
            }
        }
    }
}
