import MartletJSON
import WorldMachine

/// What only a trusted proxy may do: name the client, and ask whether a request may pass.
extension Explorer {
    /// The last number of the address of one that is trusted.
    private var trusted: Int { 236 + client.random.below(4) }
    private static let signature: [UInt8] = [13, 10, 13, 10, 0, 13, 10, 0x51, 0x55, 0x49, 0x54, 10]

    private func forwardedFor(_ head: MessageHead) -> [String] {
        head.fields.filter { $0.name.lowercased() == "x-forwarded-for" }
            .flatMap { $0.value.split(separator: ",").map { $0.filter { $0 != " " } } }
    }

    // MARK: Who the client is

    /// Names the client before the first request.
    func introduce(_ next: @escaping Next) {
        var trial = Trial("/pub/")
        (trial.from, trial.port) = (trusted, 8081)
        let (header, named): ([UInt8], String?) = client.random.pick([
            (Array("PROXY TCP4 192.0.2.1 198.51.100.7 56324 443\r\n".utf8), "192.0.2.1"),
            (Array("PROXY TCP6 2001:db8::1 ::1 80 443\r\n".utf8), "2001:db8::1"),
            (Array("PROXY UNKNOWN\r\n".utf8), nil),
            (Self.signature + [0x21, 0x11, 0, 12, 192, 0, 2, 7, 198, 51, 100, 7, 0xdc, 4, 1, 0xbb], "192.0.2.7"),
            (
                Self.signature + [0x21, 0x21, 0, 39] + [UInt8](repeating: 0x20, count: 16)
                    + [UInt8](repeating: 0x30, count: 16) + [1, 2, 3, 4, 4, 0, 0],
                "2020:2020:2020:2020:2020:2020:2020:2020"
            ),
            (Self.signature + [0x20, 0, 0, 0], nil),
        ])
        trial.introduction = header
        trial.fields = ["X-Forwarded-For: 6.6.6.6"]
        let proxy = "10.0.0.\(trial.from ?? 0)"
        trial.inspect = { [self] _, head in
            // The proxy names the client of the connection; what it says in a field comes from further away.
            let chain = forwardedFor(head)
            return chain.last == (named ?? proxy) ? nil : "from \(chain), not from \(named ?? proxy)"
        }
        send(trial, next) { _ in nil }
    }

    /// A header that is none, or of a stranger: no response.
    func introduceWrongly(_ next: @escaping Next) {
        var trial = Trial("/pub/")
        trial.port = 8081
        if client.random.chance(300) {
            trial.introduction = Array("PROXY TCP4 192.0.2.1 198.51.100.7 56324 443\r\n".utf8)
        } else {
            trial.from = trusted
            trial.introduction = client.random.pick([
                [], Array("PROXY TCP4 192.0.2.1\r\n".utf8), Array("PROXY TCP4 192.0.2.001 1.1.1.1 1 2\r\n".utf8),
                Array("PROXY TCP5 a b 1 2\r\n".utf8), Self.signature + [0x31, 0x11, 0, 12],
                Self.signature + [0x21, 0x55, 0, 12], Self.signature + [0x21, 0x11, 0xff, 0xff],
                Array("PROXY TCP4 192.0.2.1 198.51.100.7 56324 99999\r\n".utf8),
            ])
        }
        send(trial) { [self] exchange in
            exchange.isMalformed = true
            if exchange.sightings > 0 { violate(.routing, exchange, "passed without the header of a proxy") }
            next(exchange)
        }
    }

    /// A trusted proxy names the client in fields.
    func forward(_ next: @escaping Next) {
        var trial = Trial("/pub/")
        trial.from = trusted
        let (fields, first, proto): ([String], String, String) = client.random.pick([
            (
                ["X-Forwarded-For: 203.0.113.9", "X-Forwarded-Proto: https", "X-Forwarded-Host: shop.example"],
                "203.0.113.9", "https"
            ),
            (["X-Forwarded-For: 1.2.3.4, 203.0.113.9"], "1.2.3.4", "http"),
            (["Forwarded: for=203.0.113.77;proto=https;host=shop.example"], "203.0.113.77", "https"),
            (["Forwarded: For=\"[2001:db8::17]:47\";by=1.1.1.1, for=10.0.0.237;proto=http"], "2001:db8::17", "http"),
        ])
        trial.fields = fields
        let proxy = "10.0.0.\(trial.from ?? 0)"
        trial.inspect = { [self] _, head in
            let chain = forwardedFor(head)
            if chain.first != first || chain.last != proxy { return "from \(chain)" }
            let found = head.value("x-forwarded-proto") ?? "none"
            return found.hasSuffix(proto) || found.hasPrefix(proto) ? nil : "with the scheme \(found)"
        }
        send(trial, next) { _ in nil }
    }

    /// Anyone else names a client: upstreams do not hear of it.
    func forwardWrongly(_ next: @escaping Next) {
        var trial = Trial("/pub/")
        trial.fields = [
            "X-Forwarded-For: 6.6.6.6", "X-Forwarded-Proto: gopher", "X_Forwarded_Host: evil.example",
            "X-Real-IP: 6.6.6.6",
            "Forwarded: for=6.6.6.6", "Client-Cert: :AAAA:", "X-Forwarded-Prefix: /evil",
        ]
        trial.inspect = { _, head in
            for field in head.fields where ["6.6.6.6", "gopher", "evil", "AAAA"].contains(where: field.value.contains) {
                return "with \(field.name): \(field.value)"
            }
            return nil
        }
        send(trial, next) { _ in nil }
    }

    /// Where there is clear text, the way to `https`; and how ready a gateway is.
    func secure(_ next: @escaping Next) {
        if client.random.chance(400) {
            var trial = Trial("/healthz")
            trial.path = "/healthz"
            return send(trial) { [self] exchange in
                if ![0, 200, 503, 408].contains(exchange.status) {
                    violate(.routing, exchange, "got \(exchange.status)")
                }
                next(exchange)
            }
        }
        var trial = Trial("/me/")
        trial.port = 8082
        trial.fields = proof.fields
        trial.target = { $0.path + "?a=b" }
        send(trial, next) { exchange in
            let found = exchange.head?.value("location") ?? "nothing"
            let wanted = "https://api.example.com:8443\(exchange.path)?a=b"
            return exchange.status == 308 && found == wanted ? nil : "it leads to \(found)"
        }
    }

    // MARK: Whether a request may pass

    /// What a check is about: the path, and who has to be let pass.
    private struct Question {
        var path: String
        var proof = Proof.nothing
        var fields: [String] = []
        /// Whether it may pass; `nil` if that depends on what cannot be known.
        var mayPass: Bool?
        var subject = ""
    }

    private func question() -> Question {
        switch client.random.below(5) {
        case 0: return Question(path: "/pub/", mayPass: true)
        case 1: return Question(path: "/me/", mayPass: false)
        case 2: return Question(path: client.random.pick(["/nowhere/", "/auth/session/"]), mayPass: false)
        case 3:
            return Question(
                path: "/me/", proof: .wrong,
                fields: ["Authorization: Bearer mat_\(String(repeating: "A", count: 75))"], mayPass: false)
        default:
            guard let session = living, let token = session.access.last?.token else {
                return Question(path: "/opt/", mayPass: true)
            }
            return Question(
                path: "/me/", proof: .session(session), fields: ["Authorization: Bearer \(token)"],
                subject: session.subject)
        }
    }

    /// Asks by HTTP.
    func check(_ next: @escaping Next) {
        let question = question()
        let isTrusted = client.random.chance(900)
        let deny = client.random.chance(200) ? "?deny=403&browser=1" : ""
        var trial = Trial("/auth/check")
        trial.proof = question.proof
        (trial.from, trial.fields) = (isTrusted ? trusted : nil, question.fields)
        var isDescribed = true
        switch client.random.below(6) {
        case 0:
            trial.path = "/auth/check\(question.path)"
            trial.target = { $0.path + "?x=1" }
        case 1, 2:
            trial.target = { _ in "/auth/check" + deny }
            trial.more = {
                [
                    "X-Forwarded-Method: GET", "X-Forwarded-Proto: https", "X-Forwarded-Host: api.example.com",
                    "X-Forwarded-Uri: \(question.path)\($0.number)?a=b", "X-Forwarded-For: 203.0.113.9",
                ]
            }
        case 3:
            trial.target = { _ in "/auth/check" + deny }
            trial.more = { ["X-Original-URI: \(question.path)\($0.number)", "X-Original-Method: POST"] }
        case 4:
            trial.more = { ["X-Original-URL: http://api.example.com\(question.path)\($0.number)"] }
        default:
            isDescribed = false
            let fields = client.random.pick([
                ["X-Forwarded-Method: GET"], ["X-Original-URI: me"], ["X-Original-URI: /me/", "X-Original-URI: /pub/"],
                [
                    "X-Forwarded-Method: GET", "X-Forwarded-Proto: https", "X-Forwarded-Host: api.example.com",
                    "X-Forwarded-Uri: /pub/", "X-Original-URI: /me/",
                ],
                ["X-Original-URL: http:///me"], ["X-Original-Method: GET POST", "X-Original-URI: /me/"],
            ])
            trial.fields += fields
        }
        send(trial, next) { [self] exchange in
            if !isTrusted { return exchange.status == 404 ? nil : "a stranger asks" }
            if !isDescribed { return [400, 403].contains(exchange.status) ? nil : "it describes no request" }
            return wrong(
                exchange, question, passes: exchange.status == 200,
                subject: exchange.head?.value("x-user-id") ?? "", status: exchange.status)
        }
    }

    private func wrong(
        _ exchange: Exchange, _ question: Question, passes: Bool, subject: String, status: Int
    ) -> String? {
        if passes, subject != question.subject, !(subject.isEmpty && question.path != "/me/") {
            simulation.ledger.violate(
                .identity, "the check \(exchange.number) proved \(question.subject), and was \(subject)")
        }
        if passes, case .session(let session) = question.proof, session.end != nil || session.endAsked != nil {
            return nil
        }
        guard let mayPass = question.mayPass else {
            return passes || status != 404 && status != 400 ? nil : "it was not understood"
        }
        return passes == mayPass ? nil : "it \(mayPass ? "may" : "must not") pass to \(question.path)"
    }

    /// Asks by gRPC, as Envoy does.
    func callCheck(_ next: @escaping Next) {
        let question = question()
        let isTrusted = client.random.chance(900)
        let gateway = gateway
        let exchange = simulation.ledger.open(
            gateway: gateway, method: "POST", path: "/envoy.service.auth.v3.Authorization/Check", proof: question.proof,
            needsProof: false)
        var body = checkRequest("\(question.path)\(exchange.number)", question.fields)
        let isBroken = client.random.chance(150)
        if isBroken {
            body = client.random.pick([[0, 0, 0, 0, 9, 1], [0, 0, 0, 0, 1, 0xff], Array(body.dropLast()), []])
        }
        exchange.body = body
        let source = Address(isTrusted ? trusted : 200 + client.index % 50, nextPort)
        let connection = HTTP2Connection(simulation, gateway, from: source, SeededRandom(seed: client.random.next()))
        exchange.sent = ["check of \(question.path) \(question.fields)"]
        exchange.done = { [self] exchange in
            connection.close()
            next(exchange)
            guard exchange.status == 200, exchange.isComplete else { return }
            if isBroken || !isTrusted {
                if exchange.responseBody.count > 5, isBroken ? passes(exchange) : true {
                    violate(.routing, exchange, "got a response")
                }
                return
            }
            let response = Protobuf(Array(exchange.responseBody.dropFirst(5)))
            guard exchange.responseBody.count > 5 else { return }
            let ok = response.message(3)
            let status = response.message(2)?.message(1)?.number(1) ?? 0
            // An overload or an outage.
            if ok == nil, [429, 503].contains(status) { return }
            if let wrong = wrong(exchange, question, passes: ok != nil, subject: ok.map(subject) ?? "", status: status)
            {
                violate(.routing, exchange, wrong)
            }
        }
        connection.send(
            exchange, fields: ["Content-Type: application/grpc", "TE: trailers"], parts: body.isEmpty ? [[]] : [body],
            pauses: [], cut: nil)
    }

    private func passes(_ exchange: Exchange) -> Bool {
        Protobuf(Array(exchange.responseBody.dropFirst(5))).message(3) != nil
    }

    private func subject(_ response: Protobuf) -> String {
        for option in response.messages(2) {
            guard let header = option.message(1), header.text(1) == "x-user-id" else { continue }
            return header.text(2)
        }
        return ""
    }

    private func checkRequest(_ path: String, _ fields: [String]) -> [UInt8] {
        var http = Protobuf()
        http.add(2, "GET")
        http.add(4, path)
        http.add(5, "api.example.com")
        if client.random.chance(300) { http.add(6, "https") }
        if client.random.chance(200) { http.add(7, "a=b") }
        let all = fields + ["X-Request: 1"]
        let isRaw = client.random.chance(400)
        var list = Protobuf()
        for field in all {
            let parts = field.split(separator: ":", maxSplits: 1)
            var entry = Protobuf()
            entry.add(1, parts[0].lowercased())
            entry.add(isRaw && client.random.chance(500) ? 3 : 2, String(parts[1].dropFirst()))
            if isRaw { list.add(1, entry.bytes) } else { http.add(3, entry.bytes) }
        }
        if isRaw { http.add(13, list.bytes) }
        var request = Protobuf()
        request.add(2, http.bytes)
        var address = Protobuf()
        address.add(2, "203.0.113.5")
        for _ in 0..<2 {
            var outer = Protobuf()
            outer.add(1, address.bytes)
            address = outer
        }
        var attributes = Protobuf()
        attributes.add(1, address.bytes)
        attributes.add(4, request.bytes)
        var extra = Protobuf()
        extra.add(1, "deny")
        extra.add(2, "403")
        if client.random.chance(200) { attributes.add(10, extra.bytes) }
        var message = Protobuf()
        message.add(1, attributes.bytes)
        let count = message.bytes.count
        return [0, 0, 0, UInt8(count >> 8), UInt8(count & 0xff)] + message.bytes
    }
}

/// A message of protocol buffers, which is written and read field by field.
struct Protobuf {
    private(set) var bytes: [UInt8] = []

    init(_ bytes: [UInt8] = []) { self.bytes = bytes }

    mutating func add(_ field: Int, _ content: [UInt8]) {
        bytes.append(UInt8(field << 3 | 2))
        var rest = content.count
        while rest >= 0x80 {
            bytes.append(UInt8(rest & 0x7f) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
        bytes += content
    }

    mutating func add(_ field: Int, _ text: String) { add(field, Array(text.utf8)) }

    private static func number(_ bytes: inout ArraySlice<UInt8>) -> Int? {
        var (value, shift) = (0, 0)
        while let byte = bytes.popFirst(), shift < 57 {
            value |= Int(byte & 0x7f) << shift
            if byte < 0x80 { return value }
            shift += 7
        }
        return nil
    }

    private func fields(_ wanted: Int) -> [(number: Int, bytes: [UInt8])] {
        var (found, rest): ([(Int, [UInt8])], ArraySlice<UInt8>) = ([], bytes[...])
        while let tag = Self.number(&rest), let number = Self.number(&rest) {
            var content: [UInt8] = []
            if tag & 7 == 2 {
                content = Array(rest.prefix(number))
                rest = rest.dropFirst(number)
            }
            if tag >> 3 == wanted { found.append((number, content)) }
        }
        return found
    }

    func messages(_ field: Int) -> [Protobuf] { fields(field).map { Protobuf($0.bytes) } }
    func message(_ field: Int) -> Protobuf? { messages(field).first }
    func number(_ field: Int) -> Int { fields(field).first?.number ?? 0 }
    func text(_ field: Int) -> String { String(decoding: fields(field).first?.bytes ?? [], as: UTF8.self) }
}
