import MartletHTTP2
import Testing

/// A frame sent again and again on one connection.
struct Flood: CustomTestStringConvertible, Sendable {
    let testDescription: String
    /// The bytes before the flood.
    var before: [UInt8] = []
    /// The frames of one round, by its number.
    let round: @Sendable (Int) -> [UInt8]
    /// Rounds that are allowed.
    let allowed: Int
}

@Suite struct HTTP2AbuseTests {
    static let open = Raw.headers(1, HeadCase.get, flags: 4)
    static let floods: [Flood] = [
        Flood(testDescription: "SETTINGS", round: { _ in Raw.settings() }, allowed: 98),
        Flood(testDescription: "PING", round: { _ in Raw.ping() }, allowed: 100),
        Flood(testDescription: "PING acknowledgements", round: { _ in Raw.ping(flags: 1) }, allowed: 100),
        Flood(testDescription: "PRIORITY", round: { Raw.priority(Int32($0) * 2 + 1) }, allowed: 100),
        Flood(testDescription: "empty DATA", before: open, round: { _ in Raw.data(1, "") }, allowed: 100),
        Flood(
            testDescription: "DATA of padding alone", before: open,
            round: { _ in RawFrame(type: 0, flags: 8, stream: 1, payload: [3, 0, 0, 0]).bytes }, allowed: 100),
        Flood(testDescription: "an unknown type", round: { _ in RawFrame(type: 0x42).bytes }, allowed: 100),
        Flood(testDescription: "GOAWAY", before: open, round: { _ in Raw.goAway(0, 0) }, allowed: 100),
        // Every connection begins with four, every stream with two that are no noise.
        Flood(testDescription: "WINDOW_UPDATE", before: open, round: { _ in Raw.window(1, 1) }, allowed: 106),
        Flood(
            testDescription: "rapid reset",
            round: { Raw.headers(Int32($0) * 2 + 1, HeadCase.get) + Raw.reset(Int32($0) * 2 + 1) }, allowed: 200),
        Flood(
            testDescription: "resets by malformed requests",
            round: { Raw.headers(Int32($0) * 2 + 1, HeadCase.get + [("Upper", "")]) }, allowed: 200),
        Flood(
            testDescription: "heads that are refused",
            round: { Raw.headers(Int32($0) * 2 + 1, HeadCase.get + [("host", "b")]) + Raw.reset(Int32($0) * 2 + 1) },
            allowed: 100),
        Flood(
            testDescription: "resets by wrong window updates",
            round: {
                Raw.headers(Int32($0) * 2 + 1, HeadCase.get, flags: 4) + Raw.window(Int32($0) * 2 + 1, 0x7FFF_FFFF)
            }, allowed: 200),
        Flood(
            testDescription: "resets by lengths that do not hold",
            round: {
                Raw.headers(Int32($0) * 2 + 1, HeadCase.get + [("content-length", "1")], flags: 4)
                    + Raw.data(Int32($0) * 2 + 1, "xx")
            }, allowed: 200),
    ]

    private func rounds(_ flood: Flood, until limit: Int, reading: Bool) throws -> (Int, HTTP2Session) {
        let server = try HTTP2Session.establishedServer()
        server.take(flood.before)
        for round in 0..<limit {
            if !server.take(flood.round(round)).goesOn { return (round, server) }
            if reading { _ = server.output() }
        }
        return (limit, server)
    }

    @Test(arguments: floods)
    func `a flood ends the connection with ENHANCE_YOUR_CALM`(flood: Flood) throws {
        for reading in [true, false] {
            let (rounds, server) = try rounds(flood, until: 400, reading: reading)
            #expect(rounds == flood.allowed, "\(reading)")
            #expect(server.isFinished == false)
            #expect(Raw.frames(server.output()).last?.code == 11)
            #expect(server.isFinished)
        }
    }

    @Test func `the same frames spread over time are nothing bad`() throws {
        let server = try HTTP2Session.establishedServer()
        for round in 0..<1000 {
            #expect(server.take(Raw.ping() + Raw.settings(), now: Int64(round) * 200_000_000).goesOn)
            _ = server.output()
        }
    }

    @Test func `a flood of empty CONTINUATION frames ends the connection`() throws {
        let server = try HTTP2Session.establishedServer()
        var goesOn = server.take(Raw.headers(1, HeadCase.get, flags: 1)).goesOn
        var count = 0
        while goesOn, count < 200 {
            goesOn = server.take(Raw.continuation(1, [], flags: 0)).goesOn
            count += 1
        }
        #expect(count < 30)
        #expect(Raw.frames(server.output()).last?.code == 11)
    }

    @Test func `a download of small windows is no flood`() throws {
        let server = try HTTP2Session.establishedServer()
        server.take(Raw.headers(1, HeadCase.get))
        server.head(1, "HTTP/1.1 200 OK\n\n")
        for _ in 0..<2000 {
            server.body(1, String(repeating: "x", count: 100))
            _ = server.output()
            #expect(server.take(Raw.window(0, 100) + Raw.window(1, 100) + Raw.ping()).goesOn)
        }
    }

    @Test func `a peer that makes us respond but does not read is bounded`() throws {
        var options = HTTP2Options()
        options.maximumFloodFrames = 1_000_000
        options.maximumResets = 1_000_000
        for flood in Self.floods.prefix(2) {
            let server = try HTTP2Session.establishedServer(options)
            var count = 0
            while count < 100_000, server.take(flood.round(count)).goesOn { count += 1 }
            #expect(count < 10_000)
        }
    }

    @Test func `heads that are too large weigh as much as they have cost`() throws {
        let server = try HTTP2Session.establishedServer()
        let planted = [0x40] + Raw.text(Array("a".utf8)) + Raw.text([UInt8](repeating: 98, count: 3900))
        var count = 0
        var goesOn = true
        while goesOn, count < 200 {
            let fields = Raw.block(HeadCase.get) + (count == 0 ? planted : []) + [UInt8](repeating: 0xBE, count: 15)
            let head = RawFrame(type: 1, flags: 5, stream: Int32(count) * 2 + 1, payload: fields).bytes
            goesOn = server.take(head + Raw.reset(Int32(count) * 2 + 1)).goesOn
            count += 1
        }
        #expect(count == 13)
        #expect(Raw.frames(server.output()).last?.code == 11)
    }

    @Test func `padding is given back to the windows`() throws {
        let server = try HTTP2Session.establishedServer()
        server.take(Self.open)
        let payload = [255] + [UInt8](repeating: 65, count: 1) + [UInt8](repeating: 0, count: 255)
        let frame = RawFrame(type: 0, flags: 8, stream: 1, payload: payload).bytes
        var window = 65536
        var connection = 1 << 20
        for _ in 0..<20000 {
            #expect(server.take(frame).goesOn)
            window -= payload.count
            connection -= payload.count
            for update in Raw.frames(server.output()) where update.type == 8 {
                let increment = update.payload.reduce(0) { $0 << 8 | Int($1) }
                if update.stream == 0 { connection += increment } else { window += increment }
            }
            #expect(window > 0 && connection > 0)
            if window <= 0 { break }
        }
    }

    @Test func `a stream that is not read holds up no other`() throws {
        let server = try HTTP2Session.establishedServer()
        var sent = 0
        for id in stride(from: Int32(1), through: 199, by: 2) {
            server.take(Raw.headers(id, HeadCase.get, flags: 4))
            for _ in 0..<4 {
                let goesOn = server.take(Raw.data(id, String(repeating: "x", count: 16384)), consuming: false).goesOn
                #expect(goesOn)
                sent += 16384
            }
            _ = server.output()
        }
        #expect(sent > 1 << 22)
        // The 65 537th byte of one stream is too much.
        #expect(!server.take(Raw.data(1, "x"), consuming: false).goesOn || server.output().contains(3))
    }
}
