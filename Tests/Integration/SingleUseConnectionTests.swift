import Foundation
import MartletTesting
import Testing

/// Clients that come in numbers for one request each: what is done to serve them cheaply is not to be noticed by anyone.
@Suite(.serialized) struct `Connections for one request` {
    /// How often the kernel has kept a connection to itself because nothing had come on it yet, on this machine.
    private static func kept() throws -> Int {
        let lines = try String(contentsOfFile: "/proc/net/netstat", encoding: .utf8).split(separator: "\n")
        let table = lines.filter { $0.hasPrefix("TcpExt:") }.map { $0.split(separator: " ") }
        let column = try #require(table.first?.firstIndex(of: "TCPDeferAcceptDrop"))
        return try #require(Int(table[1][column]))
    }

    private static let routes = """
        - { name: quick, match: { path: /quick }, auth: none, respond: { status: 200, body: ok } }
        - { name: all, match: { path: /** }, auth: none, upstream: api }
        """
    private static let closing = "GET /quick HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    private static let long = Payload.bytes(6 << 20, seed: 3)
    private static let isHeld = Box(false)
    private static let script: ScriptedUpstream.Script = { exchange in
        switch exchange.request.target {
        case "/held":
            try waitUntil("the response may be sent") { !isHeld.value }
            // More than the client's buffer holds, and little enough for one read.
            try exchange.respond(200, bytes: Array(long.prefix(50_000)))
        case "/long": try exchange.respond(200, bytes: long)
        case "/soon":
            pause(.milliseconds(8))
            try exchange.respond(200, bytes: Array(long.prefix(100_000)))
        case "/late":
            pause(.milliseconds(600))
            try exchange.respond(200, body: "late")
        default: try exchange.respond(200, body: exchange.request.text.isEmpty ? "ok" : exchange.request.text)
        }
    }

    /// Runs `body` while many clients come for one request each.
    private func amongMany(_ body: (Gateway) throws -> Void) throws {
        try withOpenGateway(server: "workers: 1", routes: Self.routes, script: Self.script) { gateway, _ throws in
            let isOver = Box(false)
            let others = (0..<3).map { _ in
                Background {
                    var answered = 0
                    while !isOver.value {
                        // Together, so that many wait however slow the machine is.
                        let clients = try (0..<30).map { _ in try gateway.connect() }
                        for client in clients { try client.send(Self.closing) }
                        for client in clients {
                            guard try client.response().text == "ok", client.socket.isEnded() else {
                                throw TestFailure("after \(answered) responses one was not good")
                            }
                            answered += 1
                        }
                    }
                    return answered
                }
            }
            let before = try Self.kept()
            let result = Result {
                try waitUntil("the kernel keeps connections") { try Self.kept() > before }
                try body(gateway)
            }
            isOver.withLock { $0 = true }
            for other in others { #expect(try other.value() > 0) }
            try result.get()
            // Soon after they are gone all is as before: a silent connection is noticed immediately.
            try waitUntil("connections come immediately again") {
                let count = try Self.kept()
                let client = try gateway.connect()
                pause(.milliseconds(20))
                try client.send(Self.closing)
                return try client.response().status == 200 && Self.kept() == count
            }
        }
    }

    @Test func `requests in pieces, and connections that say nothing for a while, are served`() throws {
        try amongMany { gateway in
            let silent = try gateway.connect()
            let inPieces = try gateway.connect()
            try inPieces.send("POST / HTTP/1.1\r\nHost: a\r\nConn")
            pause(.milliseconds(50))
            try inPieces.send("ection: close\r\nContent-Length: 6\r\n\r\nthr")
            pause(.milliseconds(50))
            try inPieces.send("ee.")
            #expect(try inPieces.response().text == "three." && inPieces.socket.isEnded())

            let kept = try gateway.connect()
            for _ in 0..<3 { #expect(try kept.exchange("GET", "/kept").text == "ok") }

            pause(.milliseconds(1500))
            #expect(try silent.exchange("GET", "/silent").text == "ok")
        }
    }

    @Test func `what a client says behind its last request costs it nothing`() throws {
        try amongMany { gateway in
            for _ in 0..<4 {
                let client = try gateway.connect()
                try client.send(Self.closing + "\r\n")
                #expect(try client.response().text == "ok")
                let later = try gateway.connect()
                try later.send("GET /late HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                pause(.milliseconds(10))
                try later.send("\r\n")
                later.socket.finishSending()
                #expect(try later.response().text == "late")
            }
        }
    }

    @Test func `what comes behind it while the response is on its way costs it nothing`() throws {
        try amongMany { gateway in
            for _ in 0..<5 {
                let client = try HTTPClient(to: gateway.endpoint, receiveBuffer: 8192)
                try client.send("GET /soon HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                pause(.milliseconds(2))
                try client.send("\r\n")
                pause(.milliseconds(100))
                let response = try client.response(within: .seconds(20))
                let isSame = response.body == Array(Self.long.prefix(100_000))
                #expect(isSame && response.end == .complete)
            }
        }
    }

    /// The bytes and the response reach a loop in the same iteration, as they may when the machine is busy.
    @Test func `bytes behind the last request that arrive together with its response do not truncate it`() throws {
        try withOpenGateway(server: "workers: 1", script: Self.script) { gateway, upstream throws in
            Self.isHeld.withLock { $0 = true }
            let client = try HTTPClient(to: gateway.endpoint, receiveBuffer: 8192)
            try client.send("GET /held HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            try waitUntil("the request is at the upstream") { !upstream.requests.isEmpty }
            // Long enough for the loop to watch the connection.
            pause(.milliseconds(100))
            gateway.process.kill(SIGSTOP)
            // Until it has stopped: what wakes it before would be an event of its own.
            pause(.milliseconds(100))
            try client.send("\r\n")
            Self.isHeld.withLock { $0 = false }
            pause(.milliseconds(500))
            gateway.process.kill(SIGCONT)
            pause(.milliseconds(100))
            let response = try client.response(within: .seconds(20))
            let isSame = response.body == Array(Self.long.prefix(50_000))
            #expect(isSame && response.end == .complete)
        }
    }

    @Test func `a response that the client reads slowly is whole`() throws {
        try amongMany { gateway in
            let client = try HTTPClient(to: gateway.endpoint, receiveBuffer: 8192)
            try client.send("GET /long HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            pause(.milliseconds(300))
            let response = try client.response(within: .seconds(60))
            let isSame = response.body == Self.long
            #expect(isSame && response.end == .complete && client.socket.isEnded())
        }
    }

    @Test func `one that leaves before its response is noticed`() throws {
        try amongMany { gateway in
            let client = try gateway.connect()
            try client.send("GET /late HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            pause(.milliseconds(100))
            client.socket.reset()
            try waitUntil("it is in the log") { gateway.log.contains { $0["path"] == "/late" } }
            let line = try #require(gateway.log.first { $0["path"] == "/late" })
            #expect(line["status"] == "499" && line["reason"] == "request.client_left")
            #expect((Int(line["duration_us"] ?? "") ?? .max) < 500_000, "\(line)")
        }
    }
}
