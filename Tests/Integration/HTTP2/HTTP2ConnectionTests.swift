import MartletTesting
import Testing

/// Many callers on one connection, and connections of those who mean harm.
@Suite struct `HTTP/2 connections` {
    @Test func `requests of many identities on one connection are not mixed up`() throws {
        let echo: ScriptedUpstream.Script = { exchange in
            let request = exchange.request
            try exchange.respond(200, body: "\(request["X-Auth-Subject"] ?? "") \(request["X-Number"] ?? "")")
        }
        try withAppleGateway(script: echo) { gateway, _, apple throws in
            let subjects = (0..<40).map { "0012\($0 + 10).0123456789abcdef0123456789abcdef.0001" }
            let tokens = try subjects.map { try apple.token(subject: $0) }
            let caller = try HTTP2Caller(to: gateway)
            var asked: [(stream: Int32, who: Int)] = []
            for number in 0..<400 {
                while !caller.canAsk { try caller.read() }
                let who = number * 7 % subjects.count
                let fields = bearer(tokens[who]) + [("X-Auth-Subject", "forged"), ("X-Number", "\(number)")]
                asked.append((try caller.ask("GET", "/v1", fields), who))
            }
            for (number, (stream, who)) in asked.enumerated() {
                #expect(try caller.response(stream).body == "apple:\(subjects[who]) \(number)")
            }
        }
    }

    @Test func `a flood ends its own connection and fails no one else's request`() throws {
        try withOpenGateway { gateway, _ throws in
            let caller = try HTTP2Caller(to: gateway)
            for flood in [Self.resets, Self.continuations, Self.bomb, Self.pings] {
                for _ in 0..<5 {
                    let attacker = try RawSocket(connectingTo: gateway.endpoint)
                    // The gateway may have had enough before all of it is sent.
                    try? attacker.send(Self.preface + flood)
                    #expect(try caller.response(caller.ask("GET", "/")).status == 200)
                    #expect(attacker.isEnded())
                }
            }
        }
    }

    /// :method POST, :scheme http, :path /, :authority a, content-length 2.
    private static let post: [UInt8] = [0x83, 0x86, 0x84, 0x41, 1, 0x61, 0x0F, 0x0D, 1, 0x32]

    @Test func `a request whose body is not as long as it says goes nowhere, if that comes with its head`() throws {
        let bodies = [
            Self.frame(0, 0, 1, Array("hi".utf8)) + Self.frame(0, 1, 1, Array("EVIL".utf8)),
            Self.frame(0, 1, 1, Array("hi!".utf8)),
            Self.frame(0, 1, 1, Array("h".utf8)),
            Self.frame(0, 0, 1, Array("hi".utf8)) + Self.frame(0, 0, 1, Array("EVIL".utf8)),
        ]
        try withOpenGateway { gateway, upstream throws in
            for (index, body) in bodies.enumerated() {
                let socket = try RawSocket(connectingTo: gateway.endpoint)
                try socket.send(Self.preface + Self.frame(1, 4, 1, Self.post) + body)
                try waitUntil("body \(index) is in the log") {
                    gateway.log.count { $0["reason"] == "request.bad_content_length" } == index + 1
                }
            }
            #expect(upstream.requests.isEmpty && upstream.acceptedConnections == 0)
            let line = try #require(gateway.log.first { $0["reason"] == "request.bad_content_length" })
            #expect(line["status"] == "400" && line["method"] == "POST" && line["path"] == "/")
            #expect(try gateway.get("/").status == 200)
        }
    }

    private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + frame(4, 0, 0)
    /// :method GET, :scheme http, :path /, :authority a.
    private static let get: [UInt8] = [0x82, 0x86, 0x84, 0x41, 1, 0x61]

    private static var resets: [UInt8] {
        var bytes: [UInt8] = []
        for number in 0..<1000 {
            bytes += frame(1, 5, 2 * number + 1, get)
            bytes += frame(3, 0, 2 * number + 1, [0, 0, 0, 8])
        }
        return bytes
    }

    private static var continuations: [UInt8] {
        var bytes = frame(1, 1, 1, get)
        for _ in 0..<1000 { bytes += frame(9, 0, 1, [0, 1, 0x62, 1, 0x63]) }
        return bytes
    }

    /// A field of 3 872 bytes that the table keeps, and 8 000 references to it.
    private static var bomb: [UInt8] {
        var block = get + [0x40, 1, 0x62, 0x7F, 0xA1, 0x1D]
        block += [UInt8](repeating: 0x63, count: 3872)
        block += [UInt8](repeating: 0xBE, count: 8000)
        return frame(1, 5, 1, block)
    }

    private static var pings: [UInt8] {
        var bytes: [UInt8] = []
        for _ in 0..<1000 { bytes += frame(6, 0, 0, [UInt8](repeating: 1, count: 8)) }
        return bytes
    }

    private static func frame(_ type: UInt8, _ flags: UInt8, _ stream: Int, _ payload: [UInt8] = []) -> [UInt8] {
        var bytes: [UInt8] = [0, UInt8(payload.count >> 8), UInt8(payload.count & 255), type, flags, 0, 0]
        bytes += [UInt8(stream >> 8 & 255), UInt8(stream & 255)]
        return bytes + payload
    }
}
