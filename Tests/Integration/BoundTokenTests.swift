import Foundation
import MartletCore
import MartletCrypto
import MartletTesting
import Testing

/// Tokens that are bound to a key or to a certificate of the client, and certificates as credentials.
@Suite(.timeLimit(.minutes(2))) struct `Credentials that are bound to a client` {
    private let certificates: TLSCertificates
    private let issuer: AppleFixture

    init() throws {
        certificates = try TLSCertificates.shared.get()
        issuer = try AppleFixture()
    }

    private func provider(_ more: String) -> String {
        """
        company:
          kind: oidc
          issuer: https://appleid.apple.com
          jwks_url: \(issuer.url)
          audiences: [com.example.app]
          \(more)
        """
    }

    private static let routes = "- { name: all, match: { path: /** }, auth: { providers: [company] }, upstream: api }"

    private func withGateway(
        _ more: String, listen: String? = nil, server: String = "", providers: String = "",
        routes: String = Self.routes, _ body: (Gateway, ScriptedUpstream) throws -> Void
    ) throws {
        let upstream = try ScriptedUpstream()
        var config = GatewayConfig(
            endpoints: [upstream.url], providers: provider(more) + "\n" + providers, server: server, routes: routes)
        if let listen { config.listen = listen }
        try withMartlet(config.text) { try body($0, upstream) }
    }

    private func token(_ binding: String) throws -> String {
        try issuer.token { $0.claims["cnf"] = JSONText(binding) }
    }

    // MARK: Keys

    @Test func `a token that is bound to a key needs a fresh proof with each request`() throws {
        let (key, other) = (try ProofKey(), try ProofKey())
        try withGateway("dpop: optional") { gateway, upstream throws in
            let token = try token(#"{"jkt":"\#(try key.thumbprint)"}"#)
            let url = "http://localhost/a"
            func get(_ proofs: [String], scheme: String = "DPoP", _ target: String = "/a") throws -> HTTPMessage {
                try gateway.get(target, [("Authorization", "\(scheme) \(token)")] + proofs.map { ("DPoP", $0) })
            }
            for _ in 0..<3 {
                #expect(try get([key.proof("GET", url, for: token)], "/a?query=1").status == 200)
            }
            #expect(upstream.requests.last?["X-Auth-Subject"]?.hasPrefix("company:") == true)
            #expect(upstream.requests.last?["Authorization"] == nil)
            let used = try key.proof("GET", url, for: token)
            #expect(try get([used]).status == 200)
            let rejected: [(String, [String], String)] = [
                ("DPoP", [], "dpop.missing"), ("DPoP", [used], "dpop.replayed"),
                ("DPoP", [try key.proof("POST", url, for: token)], "dpop.htm_mismatch"),
                ("DPoP", [try key.proof("GET", url + "b", for: token)], "dpop.htu_mismatch"),
                (
                    "DPoP", [try key.proof("GET", url.replacing("http:", with: "https:"), for: token)],
                    "dpop.htu_mismatch"
                ),
                ("DPoP", [try key.proof("GET", url, for: "other")], "dpop.ath_mismatch"),
                ("DPoP", [try key.proof("GET", url, for: token, age: 120)], "dpop.too_old"),
                ("DPoP", [try key.proof("GET", url, for: token, type: "jwt")], "dpop.bad_type"),
                ("DPoP", [try other.proof("GET", url, for: token)], "dpop.wrong_key"),
                (
                    "DPoP", [try key.proof("GET", url, for: token), try key.proof("GET", url, for: token)],
                    "dpop.repeated"
                ),
                ("DPoP", ["x"], "dpop.malformed"),
                ("Bearer", [try key.proof("GET", url, for: token)], "auth.bound_token"),
                ("Bearer", [], "auth.bound_token"),
            ]
            let count = upstream.requests.count
            for (scheme, proofs, reason) in rejected {
                let response = try get(proofs, scheme: scheme)
                #expect(
                    response.status == 401 && response.member("code") == "dpop_proof_invalid", "\(reason) \(response)")
                #expect(response["WWW-Authenticate"]?.contains("error=\"invalid_dpop_proof\"") == true)
                let id = response["X-Request-Id"] ?? ""
                try waitUntil("\(reason) is logged") {
                    gateway.log.contains { $0["request_id"] == id && $0["reason"] == reason }
                }
            }
            #expect(upstream.requests.count == count)
            // One without a binding is a bearer token, and nothing else.
            let free = try issuer.token()
            #expect(try gateway.get("/a", bearer(free)).status == 200)
            let proof = try key.proof("GET", url, for: free)
            #expect(try gateway.get("/a", [("Authorization", "DPoP \(free)"), ("DPoP", proof)]).status == 401)
        }
    }

    @Test func `the URL of a proof is the one that the client sees`() throws {
        let key = try ProofKey()
        try withGateway("dpop: required", server: "trusted_proxies: [127.0.0.1]") { gateway, _ throws in
            let token = try token(#"{"jkt":"\#(try key.thumbprint)"}"#)
            func status(_ url: String, _ fields: [(String, String)]) throws -> Int {
                let proof = try key.proof("GET", url, for: token)
                return try gateway.get("/a", [("Authorization", "DPoP \(token)"), ("DPoP", proof)] + fields).status
            }
            let proxied = [("X-Forwarded-Proto", "https"), ("X-Forwarded-Host", "API.example.com")]
            #expect(try status("https://api.example.com/a", proxied) == 200)
            #expect(try status("HTTPS://api.example.com:443/a", proxied) == 200)
            #expect(try status("http://api.example.com/a", proxied) == 401)
            #expect(try status("http://localhost/a", proxied) == 401)
            #expect(try status("http://localhost/a", []) == 200)
            #expect(try gateway.get("/a", bearer(issuer.token())).status == 401)
        }
    }

    @Test(arguments: ["dpop: off", "bound: true"])
    func `a token that is bound to a key is rejected where keys are not checked`(setting: String) throws {
        let key = try ProofKey()
        try withGateway(setting) { gateway, upstream throws in
            let token = try token(#"{"jkt":"\#(try key.thumbprint)"}"#)
            let proof = try key.proof("GET", "http://localhost/a", for: token)
            for scheme in ["Bearer", "DPoP"] {
                let response = try gateway.get("/a", [("Authorization", "\(scheme) \(token)"), ("DPoP", proof)])
                #expect(response.status == 401)
            }
            #expect(upstream.requests.isEmpty)
        }
    }

    // MARK: Certificates

    private func curl(
        _ gateway: Gateway, _ options: [String], _ identity: CertificateAuthority.Issued? = nil
    ) throws -> String {
        let port = String(gateway.endpoint.port)
        let client = identity.map { ["--cert", $0.certificateFile, "--key", $0.keyFile] } ?? []
        return try run(
            try Executable.named("curl"),
            [
                "-sS", "-o", "/dev/null", "-w", "%{http_code} ", "--max-time", "10", "--cacert",
                certificates.authority.certificateFile,
            ] + client + options + ["https://127.0.0.1:\(port)/x", "-o", "/dev/null", "https://127.0.0.1:\(port)/y"]
        ).output.trimmingCharacters(in: .whitespaces)
    }

    private func der(_ issued: CertificateAuthority.Issued) throws -> [UInt8] {
        let text = try String(contentsOfFile: issued.certificateFile, encoding: .utf8)
        let lines = text.split(separator: "\n").drop { !$0.contains("BEGIN CERT") }.dropFirst()
        return try #require(
            Data(base64Encoded: lines.prefix { !$0.contains("END CERT") }.joined()).map(Array.init))
    }

    private var listen: String {
        certificates.listener(
            more: ", client_ca_file: \"\(certificates.authority.certificateFile)\", client_auth: optional")
    }

    @Test func `a token that is bound to a certificate needs it in the handshake`() throws {
        let stranger = try certificates.authority.issue("stranger", ["DNS:stranger"])
        try withGateway("bound: true", listen: listen) { gateway, upstream throws in
            let thumbprint = base64URL(SHA256.digest(try der(certificates.client)))
            let token = try token(#"{"x5t#S256":"\#(thumbprint)"}"#)
            let header = ["-H", "Authorization: Bearer \(token)"]
            #expect(try curl(gateway, header, certificates.client) == "200 200")
            #expect(try curl(gateway, header + ["--http1.1"], certificates.client) == "200 200")
            #expect(upstream.requests.count == 4)
            #expect(try curl(gateway, header, stranger) == "401 401")
            #expect(try curl(gateway, header) == "401 401")
            #expect(
                try curl(gateway, ["-H", "Authorization: Bearer \(try issuer.token())"], certificates.client)
                    == "401 401")
            #expect(upstream.requests.count == 4)
            for reason in ["auth.certificate_mismatch", "auth.certificate_missing", "oidc.unbound_token"] {
                try waitUntil("\(reason) is logged") { gateway.log.contains { $0["reason"] == reason } }
            }
        }
    }

    private static let machines =
        "- { name: all, match: { path: /** }, auth: { providers: [machines, company] }, upstream: api }"

    @Test func `a certificate is an identity where there is no other credential`() throws {
        let providers = "machines: { kind: mtls, identity: san_dns }"
        try withGateway("", listen: listen, providers: providers, routes: Self.machines) { gateway, upstream throws in
            #expect(try curl(gateway, [], certificates.client) == "200 200")
            #expect(upstream.requests.allSatisfy { $0["X-Auth-Subject"] == "machines:client" })
            // A client's own field means nothing.
            let field = "Client-Cert: :\(Data(try der(certificates.client)).base64EncodedString()):"
            #expect(try curl(gateway, ["-H", field]) == "401 401")
            let count = upstream.requests.count
            // With a token the token decides.
            let token = try issuer.token()
            #expect(
                try curl(gateway, ["-H", "Authorization: Bearer \(token)", "-H", field], certificates.client)
                    == "200 200")
            #expect(upstream.requests.count == count + 2)
            #expect(upstream.requests.last?["X-Auth-Subject"]?.hasPrefix("company:") == true)
            #expect(upstream.requests.allSatisfy { $0["Client-Cert"] == nil })
            #expect(try curl(gateway, ["-H", "Authorization: Bearer x"], certificates.client) == "401 401")
        }
    }

    @Test func `a trusted proxy names the client's certificate`() throws {
        let other = try CertificateAuthority()
        let stranger = try other.issue("stranger", ["DNS:stranger"])
        let providers =
            "machines: { kind: mtls, identity: san_dns, ca_file: \"\(certificates.authority.certificateFile)\" }"
        try withGateway(
            "bound: true", server: "trusted_proxies: [127.0.0.1]", providers: providers, routes: Self.machines
        ) { gateway, upstream throws in
            func field(_ issued: CertificateAuthority.Issued) throws -> (String, String) {
                ("Client-Cert", ":\(Data(try der(issued)).base64EncodedString()):")
            }
            let forwarded = ("X-Forwarded-For", "192.0.2.1")
            #expect(try gateway.get("/a", [forwarded, field(certificates.client)]).status == 200)
            #expect(upstream.requests.last?["X-Auth-Subject"] == "machines:client")
            #expect(upstream.requests.last?["Client-Cert"] == nil)
            #expect(try gateway.get("/a", [forwarded, field(stranger)]).status == 401)
            #expect(try gateway.get("/a", [forwarded]).status == 401)
            // The authority's file does not have what is between it and the client; the proxy names it.
            let between = try certificates.authority.issue(
                "between", subject: "/CN=between",
                extensions: ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign"])
            let authority = try CertificateAuthority(adopting: between)
            let far = try authority.issue("far", ["DNS:far"])
            let link = ":\(Data(try der(between)).base64EncodedString()):"
            #expect(try gateway.get("/a", [forwarded, field(far)]).status == 401)
            for value in ["x", ":!:", Array(repeating: link, count: 9).joined(separator: ", ")] {
                let response = try gateway.get("/a", [forwarded, field(far), ("Client-Cert-Chain", value)])
                expectRejection(response, 400, "request_invalid")
            }
            #expect(try gateway.get("/a", [forwarded, field(far), ("Client-Cert-Chain", link)]).status == 200)
            #expect(upstream.requests.last?["X-Auth-Subject"] == "machines:far")
            #expect(upstream.requests.last?["Client-Cert-Chain"] == nil)
            // A browser sends its certificate for any page; the fields that scripts cannot set say for which.
            let sites = [("same-origin", 200), ("none", 200), ("cross-site", 403), ("same-site", 403)]
            for (site, status) in sites {
                let fields = [forwarded, try field(certificates.client), ("Sec-Fetch-Site", site)]
                #expect(try gateway.exchange("POST", "/a", fields).status == status, "\(site)")
            }
            for value in ["", "x", ":AAAA:", ":!:", "\"text\""] {
                let response = try gateway.get("/a", [forwarded, ("Client-Cert", value)])
                // What is no byte sequence is no field of RFC 9440; what is one may be no certificate.
                #expect(response.status == (value == ":AAAA:" ? 401 : 400), "\(value) \(response)")
            }
            #expect(try gateway.get("/a", [field(certificates.client), field(certificates.client)]).status == 400)
            let thumbprint = base64URL(SHA256.digest(try der(certificates.client)))
            let token = try token(#"{"x5t#S256":"\#(thumbprint)"}"#)
            let expected = [(certificates.client, 200), (stranger, 401)]
            for (issued, status) in expected {
                #expect(try gateway.get("/a", bearer(token) + [forwarded, field(issued)]).status == status)
            }
            #expect(try gateway.get("/a", bearer(token) + [forwarded]).status == 401)
        }
    }
}
