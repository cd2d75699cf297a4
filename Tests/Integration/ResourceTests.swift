import Foundation
import MartletTesting
import Testing

/// What a busy or hostile day leaves behind: nothing.
@Suite(.serialized) struct `Resources` {
    @Test func `hundreds of concurrent connections are served`() throws {
        try withAppleGateway { gateway, _, apple throws in
            let token = try apple.token()
            let workers = (0..<16).map { _ in
                Background { () -> [String] in
                    let clients = try (0..<25).map { _ in try gateway.connect() }
                    var outcomes: [String] = []
                    for _ in 0..<5 {
                        for client in clients { try client.send("GET", "/v1", bearer(token)) }
                        for client in clients {
                            let response = try client.response()
                            outcomes.append("\(response.status) \(response.member("code") ?? "")")
                        }
                    }
                    return outcomes
                }
            }
            let outcomes = try workers.flatMap { try $0.value(within: .seconds(60)) }
            let counts = outcomes.reduce(into: [:]) { $0[$1, default: 0] += 1 }
            #expect(counts == ["200 ": 16 * 25 * 5])
        }
    }

    @Test func `descriptors are given back`() throws {
        try withOpenGateway { gateway, upstream throws in
            _ = try gateway.get("/warm")
            try waitUntil("the client's side is closed") { try gateway.openDescriptors() > 0 }
            let before = try gateway.openDescriptors()
            for round in 0..<60 {
                let client = try gateway.connect()
                switch round % 5 {
                case 0: _ = try client.exchange("GET", "/", [("Connection", "close")])
                case 1: try client.send("GET / HT")
                case 2: try client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc")
                case 3: try client.send("GARBAGE\r\n\r\n")
                default: client.socket.reset()
                }
                client.close()
            }
            upstream.respond { $0.closes = true }
            for _ in 0..<10 { _ = try? gateway.get("/") }
            try waitUntil("the descriptors are back", within: .seconds(5)) {
                try gateway.openDescriptors() <= before + 4
            }
        }
    }

    @Test func `large bodies and slow readers cost no memory`() throws {
        let total = 64 << 20
        let script: ScriptedUpstream.Script = { exchange in
            try exchange.send("HTTP/1.1 200 OK\r\nContent-Length: \(total)\r\n\r\n")
            let piece = Payload.bytes(1 << 18)
            for _ in 0..<(total >> 18) { try exchange.send(piece) }
        }
        try withOpenGateway(script: script) { gateway, _ throws in
            _ = try gateway.connect().socket.isSilent(for: .milliseconds(10))
            let before = try gateway.memory("VmHWM")
            let clients = try (0..<4).map { _ in
                let client = try HTTPClient(to: gateway.endpoint, receiveBuffer: 16_384)
                try client.send("GET", "/")
                return client
            }
            pause(.seconds(1))
            let response = try clients[0].reader.readHead()
            #expect(response?.status == 200)
            #expect(try clients[0].socket.receiveToEndOf(total - clients[0].reader.pending.count))
            let after = try gateway.memory("VmHWM")
            #expect(after - before < 24 << 20, "\(before) to \(after) bytes")
        }
    }

    @Test func `a flood of tokens is cached within bounds`() throws {
        try withAppleGateway(server: "workers: 1") { gateway, _, apple throws in
            let client = try gateway.connect()
            _ = try client.exchange("GET", "/v1", bearer(apple.token()))
            let before = try gateway.memory("VmRSS")
            var token = Token(kid: apple.key.identifier)
            token.claims["padding"] = JSONText(string: String(repeating: "x", count: 3000))
            for index in 0..<1500 {
                token.claims["sub"] = JSONText(string: "s\(index)")
                // Half are good, half are not.
                let text = try token.signed(by: apple.key) + (index % 2 == 0 ? "" : "AAAA")
                let status = try client.exchange("GET", "/v1", bearer(text)).status
                #expect(status == (index % 2 == 0 ? 200 : 401))
            }
            let after = try gateway.memory("VmRSS")
            #expect(after - before < 48 << 20, "\(before) to \(after) bytes")
        }
    }

    @Test func `a body slower than the least rate is cut off`() throws {
        try withOpenGateway(server: "limits: { body_min_rate: 256B }") { gateway, _ throws in
            let client = try gateway.connect()
            let socket = client.socket
            try client.send("POST", "/", [("Content-Length", "100000")])
            let drip = Background { () -> Int in
                var count = 0
                while count < 300, (try? socket.send("x")) != nil {
                    count += 1
                    pause(.milliseconds(200))
                }
                return count
            }
            #expect(client.socket.isEnded(within: .seconds(45)))
            #expect(try drip.value(within: .seconds(70)) < 250)
        }
    }
}

extension Gateway {
    /// How many descriptors the process holds.
    func openDescriptors() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process.identifier)/fd").count
    }

    /// The names of all its threads.
    func threadNames() throws -> [String] {
        let folder = "/proc/\(process.identifier)/task"
        return try FileManager.default.contentsOfDirectory(atPath: folder).map { thread in
            try String(contentsOfFile: "\(folder)/\(thread)/comm", encoding: .utf8).trimmingCharacters(in: .newlines)
        }
    }

    /// By how much the priority of each thread is lowered, by its name; threads of one name have the same.
    func niceness() throws -> [String: Int] {
        let folder = "/proc/\(process.identifier)/task"
        var all: [String: Int] = [:]
        for thread in try FileManager.default.contentsOfDirectory(atPath: folder) {
            let text = try String(contentsOfFile: "\(folder)/\(thread)/stat", encoding: .utf8)
            let name = text.drop { $0 != "(" }.dropFirst().prefix { $0 != ")" }
            let fields = text.drop { $0 != ")" }.split(separator: " ")
            guard fields.indices.contains(17) else { throw TestFailure(text) }
            all[String(name)] = Int(fields[17])
        }
        return all
    }

    /// A line of the process's status, in bytes.
    func memory(_ name: String) throws -> Int {
        let text = try String(contentsOfFile: "/proc/\(process.identifier)/status", encoding: .utf8)
        let line = text.split(separator: "\n").first { $0.hasPrefix("\(name):") }
        return (line?.split(whereSeparator: { $0 == " " || $0 == "\t" }).compactMap { Int($0) }.first ?? 0) * 1024
    }
}
