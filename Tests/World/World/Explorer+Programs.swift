import MartletCore
import MartletCrypto
import WorldMachine

/// An API key, as an operator has made it.
struct ProgramKey {
    let text: String
    let subject: String
    /// That of the file of keys.
    let line: String
    let isGood: Bool

    static let all = [
        ProgramKey(
            1, "billing",
            "\"claims\":{\"tier\":\"gold\",\"level\":4,\"role\":\"admin\",\"teams\":[\"x\"]},\"scopes\":[\"read\"]",
            isGood: true),
        ProgramKey(2, "metering", "\"claims\":{\"tier\":\"silver\"}", isGood: true),
        ProgramKey(3, "former", "\"revoked_at\":1700000001", isGood: false),
        ProgramKey(4, "late", "\"expires_at\":1700000002", isGood: false),
    ]

    private init(_ number: Int, _ subject: String, _ members: String, isGood: Bool) {
        let digits = Array("0123456789abcdef")
        func hexadecimal(_ bytes: ArraySlice<UInt8>) -> String {
            String(bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
        }
        let id = hexadecimal(SHA256.digest([UInt8(number)])[..<8])
        let start = "mak_" + id + hexadecimal(SHA256.digest([UInt8(number), 1])[...])
        text = start + hexadecimal(SHA256.digest(Array(start.utf8))[..<4])
        let digest = hexadecimal(SHA256.digest(Array(text.utf8))[...])
        line =
            "{\"id\":\"\(id)\",\"sha256\":\"\(digest)\",\"subject\":\"\(subject)\",\"created_at\":1700000000,\(members)}\n"
        self.subject = subject
        self.isGood = isGood
    }
}

/// A partner's server, which signs its requests.
enum Partner {
    static let secret = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

    /// The fields of a signed request (RFC 9421).
    static func fields(
        _ method: String, _ path: String, query: String, _ body: [UInt8]?, key: String, created: Int64, nonce: String?
    ) -> [String] {
        var lines = [
            ("@method", method), ("@authority", "api.example.com"), ("@path", path),
            ("@query", query.isEmpty ? "?" : query),
        ]
        var fields: [String] = []
        if let body {
            let digest = "sha-256=:\(Base64.encode(SHA256.digest(body), padding: .required)):"
            fields.append("Content-Digest: \(digest)")
            lines.append(("content-digest", digest))
        }
        var covered = "(" + lines.map { "\"\($0.0)\"" }.joined(separator: " ") + ");created=\(created);keyid=\"\(key)\""
        if let nonce { covered += ";nonce=\"\(nonce)\"" }
        let base = lines.map { "\"\($0.0)\": \($0.1)\n" }.joined() + "\"@signature-params\": \(covered)"
        let code = HMACSHA256.authenticate(
            Array(base.utf8), key: Secret(Array("0123456789abcdef0123456789abcdef".utf8)))
        return fields + [
            "Signature-Input: sig=\(covered)", "Signature: sig=:\(Base64.encode(code, padding: .required)):",
        ]
    }
}

/// Programs, which have credentials of their own.
extension Explorer {
    /// A certificate of a client, `spiffe://example/device/7`.
    private static let certificate =
        "MIIByjCCAXCgAwIBAgIUd+kDHP/r9D7xqNzLhmNyvq3rO3owCgYIKoZIzj0EAwIwEzERMA8GA1UEAwwIZGV2aWNlLTcwIBcNMjYxMTMwMTY1Mz"
        + "QzWhgPMjEyNjExMDYxNjUzNDNaMBMxETAPBgNVBAMMCGRldmljZS03MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAED6BjKItptnYmyzcinPuQ"
        + "wKOQ6Yd9Fuzjqn16+vd3b8DhGdN8eBdFR1w3tVxvJZR8e/9dvpCGhfuQJmXfy8W1r6OBnzCBnDAdBgNVHQ4EFgQU3PVLNdOP21+6hP2m9NyIMI"
        + "RrVA8wHwYDVR0jBBgwFoAU3PVLNdOP21+6hP2m9NyIMIRrVA8wDwYDVR0TAQH/BAUwAwEB/zA0BgNVHREELTArhhlzcGlmZmU6Ly9leGFtcGxl"
        + "L2RldmljZS83gg5kZXZpY2UuZXhhbXBsZTATBgNVHSUEDDAKBggrBgEFBQcDAjAKBggqhkjOPQQDAgNIADBFAiEAschtBOLBycc+1a+P9/KOla"
        + "2Sre7vwhtZ8BRgFrPqUDwCIF1CkeAGLiU+ohADukG799uFy7H97bO7njgqb9bW01SL"

    /// A program's request.
    /// - Parameter mayPass: whether its credential is good; `nil` if that cannot be known.
    private func send(_ trial: Trial, mayPass: Bool?, _ next: @escaping Next) {
        send(trial, next) { exchange in
            if exchange.isFromUpstream { return mayPass == false ? "its credential is none" : nil }
            return mayPass == true && [401, 403].contains(exchange.status) ? "its credential is good" : nil
        }
    }

    func presentKey(_ next: @escaping Next) {
        let key = client.random.pick(ProgramKey.all)
        var trial = Trial("/api/")
        trial.needsProof = true
        var isGood = key.isGood
        switch client.random.below(4) {
        case 0: trial.fields = ["Authorization: Bearer \(key.text)"]
        case 1:
            isGood = false
            trial.fields = ["X-Api-Key: \(key.text.dropLast())\(key.text.hasSuffix("0") ? "1" : "0")"]
        case 2 where has(.proxies) && client.random.chance(500): return presentCertificate(next)
        default: trial.fields = ["X-Api-Key: \(key.text)"]
        }
        trial.proof = isGood ? .program(subject: "keys:\(key.subject)") : .wrong
        trial.inspect = { _, head in
            head.value("x-api-key") == nil && head.value("authorization") == nil ? nil : "with the key"
        }
        send(trial, mayPass: isGood, next)
    }

    private func has(_ feature: Feature) -> Bool { plan.has(feature) }

    /// A trusted proxy says which certificate its client has.
    private func presentCertificate(_ next: @escaping Next) {
        let isTrusted = client.random.chance(700)
        var trial = Trial("/api/")
        trial.needsProof = true
        trial.from = isTrusted ? 237 : nil
        let isGood = isTrusted && client.random.chance(800)
        let bytes = client.random.pick(["AAAA", "a", Self.certificate + "AA"])
        trial.fields = ["Client-Cert: :\(isGood || !isTrusted ? Self.certificate : bytes):"]
        trial.proof = isGood ? .direct(subject: "device:spiffe://example/device/7") : .wrong
        trial.inspect = { _, head in head.value("client-cert") == nil ? nil : "with the certificate" }
        send(trial, mayPass: isGood, next)
    }

    func sign(_ next: @escaping Next) {
        let (key, silver) = client.random.chance(600) ? ("acme", false) : ("beta", true)
        let trick = client.random.chance(600) ? 0 : client.random.within(1...6)
        var trial = Trial(client.random.chance(300) ? "/either/" : "/api/")
        trial.needsProof = trial.path == "/api/"
        trial.method = client.random.pick(["GET", "POST", "PUT"])
        if trial.method != "GET" { trial.body = (0..<client.random.below(5000)).map { UInt8(truncatingIfNeeded: $0) } }
        let query = client.random.pick(["", "?a=b"])
        trial.target = { $0.path + query }
        // A clock that is late or early decides otherwise.
        let isKnown = plan.skew < 20_000_000_000
        trial.proof = trick == 0 || trick == 6 ? .program(subject: "partner:\(key)") : .wrong
        let now = simulation.machine.wallTime / 1_000_000_000 - 1
        let nonce = silver && trick != 1 || client.random.chance(200) ? "n\(client.random.next())" : nil
        let (method, body) = (trial.method, trial.body)
        trial.more = { exchange in
            var fields = Partner.fields(
                trick == 2 ? "DELETE" : method, exchange.path, query: trick == 3 ? "?a=c" : query, body, key: key,
                created: trick == 4 ? now - 300 : now, nonce: nonce)
            if trick == 5 { fields.append("Signature: sig2=:AAAA:") }
            return fields
        }
        // Another body than the one that was signed, of the same length.
        if trick == 6, let body, let last = body.last {
            return sendOther(trial, Array(body.dropLast()) + [~last], next)
        }
        trial.inspect = inspection(ofGold: !silver)
        let isWrong = trick > 1 && trick != 6 || trick == 1 && silver && nonce == nil
        if !isWrong, trick == 1 { trial.proof = .program(subject: "partner:\(key)") }
        send(trial, mayPass: isWrong ? (trick == 4 && !isKnown ? nil : false) : isKnown ? true : nil, next)
    }

    /// A body that the digest is not of: an upstream never gets all of it.
    private func sendOther(_ trial: Trial, _ body: [UInt8], _ next: @escaping Next) {
        var other = trial
        let fields = trial.more
        other.more = { exchange in
            exchange.isWhole = false
            return fields?(exchange) ?? []
        }
        other.body = body
        send(other, next) { exchange in
            exchange.isFromUpstream && exchange.isComplete && exchange.status == 200 ? "its body is another one" : nil
        }
    }

    /// What upstreams get of the claims of `acme`, or of `beta`.
    private func inspection(ofGold isGold: Bool) -> (Exchange, MessageHead) -> String? {
        { exchange, head in
            guard exchange.path.hasPrefix("/api/") else { return nil }
            let wanted =
                isGold
                ? [
                    ("x-tier", "gold"), ("x-level", "5"), ("x-teams", "a;b, c"), ("x-teams-json", "[\"a\",\"b, c\"]"),
                    ("x-member", "true"), ("x-name", "Zo%C3%AB"), ("x-name-64", "Wm_Dqw"),
                    ("x-name-8187", "UTF-8''Zo%C3%AB"),
                    ("x-name-ascii", nil),
                ] : [("x-tier", "silver"), ("x-level", "2"), ("x-teams", "d"), ("x-name", nil)]
            for (name, value) in wanted where head.value(name) != value {
                return "with \(name): \(head.value(name) ?? "nothing"), not \(value ?? "nothing")"
            }
            return nil
        }
    }

    /// A credential that a service of one's own decides about.
    func callRobot(_ next: @escaping Next) {
        let name = client.random.pick(["ada", "bob", "inactive", "denied", "broken", "busy", "old"])
        var trial = Trial("/api/")
        trial.needsProof = true
        trial.fields = [client.random.chance(500) ? "Authorization: Bearer pt_\(name)" : "X-Partner: \(name)"]
        let isGood = ["ada", "bob"].contains(name)
        trial.proof = isGood ? .program(subject: "robot:\(name)") : .wrong
        trial.inspect = { _, head in head.value("x-partner") == nil ? nil : "with the credential" }
        send(trial, mayPass: isGood, next)
    }

    /// Conditions on claims.
    func beGold(_ next: @escaping Next) {
        var trial = Trial("/gold/")
        trial.needsProof = true
        let (fields, subject, isGold): ([String], String, Bool) = client.random.pick([
            (["X-Api-Key: \(ProgramKey.all[0].text)"], "keys:billing", true),
            (["X-Api-Key: \(ProgramKey.all[1].text)"], "keys:metering", false),
            (["Authorization: Bearer pt_ada"], "robot:ada", true),
            (["Authorization: Bearer pt_bob"], "robot:bob", false),
        ])
        (trial.fields, trial.proof) = (fields, .program(subject: subject))
        send(trial, next) { exchange in
            if exchange.isFromUpstream { return isGold ? nil : "its claims are others" }
            return isGold && [401, 403].contains(exchange.status) || exchange.status == 401
                ? "its claims are enough" : nil
        }
    }
}
