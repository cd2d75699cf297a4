import MartletCore
import MartletHTTP2

/// A frame written by hand.
struct RawFrame {
    var type: UInt8
    var flags: UInt8 = 0
    var stream: Int32 = 0
    var payload: [UInt8] = []
    /// The length in the header, if it is not the payload's.
    var length: Int?

    var bytes: [UInt8] {
        let count = length ?? payload.count
        let id = UInt32(bitPattern: stream)
        return [
            UInt8(count >> 16 & 255), UInt8(count >> 8 & 255), UInt8(count & 255), type, flags, UInt8(id >> 24),
            UInt8(id >> 16 & 255), UInt8(id >> 8 & 255), UInt8(id & 255),
        ] + payload
    }
}

/// Frames of the kinds that tests send.
enum Raw {
    static let magic = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
    static let endStream: UInt8 = 1
    static let endHeaders: UInt8 = 4

    static func settings(_ values: [(UInt16, UInt32)] = []) -> [UInt8] {
        RawFrame(type: 4, payload: values.flatMap { big($0.0) + big($0.1) }).bytes
    }
    static let settingsAcknowledgement = RawFrame(type: 4, flags: 1).bytes
    static let preface = magic + settings() + settingsAcknowledgement

    static func headers(_ stream: Int32, _ fields: [(String, String)], flags: UInt8 = 5) -> [UInt8] {
        RawFrame(type: 1, flags: flags, stream: stream, payload: block(fields)).bytes
    }
    static func continuation(_ stream: Int32, _ payload: [UInt8], flags: UInt8 = 4) -> [UInt8] {
        RawFrame(type: 9, flags: flags, stream: stream, payload: payload).bytes
    }
    static func data(_ stream: Int32, _ text: String, flags: UInt8 = 0) -> [UInt8] {
        RawFrame(type: 0, flags: flags, stream: stream, payload: Array(text.utf8)).bytes
    }
    static func reset(_ stream: Int32, _ code: UInt32 = 8) -> [UInt8] {
        RawFrame(type: 3, stream: stream, payload: big(code)).bytes
    }
    static func ping(flags: UInt8 = 0) -> [UInt8] {
        RawFrame(type: 6, flags: flags, payload: Array(repeating: 1, count: 8)).bytes
    }
    static func window(_ stream: Int32, _ increment: UInt32) -> [UInt8] {
        RawFrame(type: 8, stream: stream, payload: big(increment)).bytes
    }
    static func priority(_ stream: Int32, on parent: UInt32 = 0) -> [UInt8] {
        RawFrame(type: 2, stream: stream, payload: big(parent) + [15]).bytes
    }
    static func goAway(_ last: UInt32, _ code: UInt32) -> [UInt8] {
        RawFrame(type: 7, payload: big(last) + big(code)).bytes
    }

    /// Literal fields without indexing and without Huffman coding (RFC 7541 §6.2.2).
    static func block(_ fields: [(String, String)]) -> [UInt8] {
        fields.flatMap { [0] + text(Array($0.0.utf8)) + text(Array($0.1.utf8)) }
    }
    static func text(_ bytes: [UInt8]) -> [UInt8] { integer(bytes.count, prefix: 7) + bytes }
    /// RFC 7541 §5.1.
    static func integer(_ value: Int, prefix: Int, mark: UInt8 = 0) -> [UInt8] {
        let limit = (1 << prefix) - 1
        if value < limit { return [mark | UInt8(value)] }
        var rest = value - limit
        var bytes = [mark | UInt8(limit)]
        while rest >= 128 {
            bytes.append(UInt8(rest & 127) | 128)
            rest >>= 7
        }
        return bytes + [UInt8(rest)]
    }

    static func big(_ value: UInt16) -> [UInt8] { [UInt8(value >> 8), UInt8(value & 255)] }
    static func big(_ value: UInt32) -> [UInt8] { big(UInt16(value >> 16)) + big(UInt16(value & 0xFFFF)) }

    /// The frames in the output of a session, without the client's magic.
    static func frames(_ bytes: [UInt8]) -> [RawFrame] {
        var rest = bytes[...]
        if rest.starts(with: magic) { rest = rest.dropFirst(magic.count) }
        var frames: [RawFrame] = []
        while rest.count >= 9 {
            let head = Array(rest.prefix(9))
            let count = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
            let id = head[5...8].reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            frames.append(
                RawFrame(
                    type: head[3], flags: head[4], stream: Int32(bitPattern: id & 0x7FFF_FFFF),
                    payload: Array(rest.dropFirst(9).prefix(count))))
            rest = rest.dropFirst(9 + count)
        }
        return frames
    }
}

extension RawFrame {
    /// The error code of RST_STREAM or GOAWAY.
    var code: UInt32? {
        switch type {
        case 3: payload.reduce(0) { $0 << 8 | UInt32($1) }
        case 7: payload.dropFirst(4).prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
        default: nil
        }
    }
}

/// An event with its text or its data.
enum Seen: Equatable {
    case head(Int32, String, ends: Bool)
    case interim(Int32, String)
    case trailers(Int32, String)
    case data(Int32, String)
    case other(HTTP2Event)
}

extension HTTP2Session {
    /// Receives all bytes and dequeues every event.
    @discardableResult
    func take(_ bytes: [UInt8], now: Int64 = 0, consuming: Bool = true) -> (goesOn: Bool, events: [Seen]) {
        let goesOn = unsafe bytes.withUnsafeBufferPointer { unsafe receive($0, now: now) }
        return (goesOn, events(bytes, consuming: consuming))
    }

    /// Receives the bytes one by one, and joins adjacent data.
    func takeByByte(_ bytes: [UInt8]) -> (goesOn: Bool, events: [Seen]) {
        var goesOn = true
        var seen: [Seen] = []
        for byte in bytes {
            let step = take([byte])
            goesOn = step.goesOn
            for event in step.events {
                if case .data(let id, let more) = event, case .data(id, let text) = seen.last {
                    seen[seen.count - 1] = .data(id, text + more)
                } else {
                    seen.append(event)
                }
            }
            if !goesOn { break }
        }
        return (goesOn, seen)
    }

    /// Dequeues the pending events.
    func events(_ bytes: [UInt8] = [], consuming: Bool = true) -> [Seen] {
        var seen: [Seen] = []
        while let event = nextEvent() {
            switch event {
            case .head(let id, let ends): seen.append(.head(id, head(id), ends: ends))
            case .interim(let id): seen.append(.interim(id, head(id)))
            case .trailers(let id): seen.append(.trailers(id, head(id)))
            case .data(let id, let start, let count):
                seen.append(.data(id, String(decoding: bytes[start..<start + count], as: UTF8.self)))
                if consuming { consume(id, count) }
            default: seen.append(.other(event))
            }
        }
        return seen
    }

    private func head(_ id: Int32) -> String {
        var buffer = ByteBuffer()
        takeHead(id, into: &buffer)
        return String(decoding: buffer.array, as: UTF8.self)
    }

    /// The pending output.
    func output(upTo limit: Int = 1 << 20) -> [UInt8] {
        var buffer = ByteBuffer()
        takeOutput(into: &buffer, upTo: limit)
        return buffer.array
    }

    func head(_ id: Int32, _ text: String, ends: Bool = false) {
        var text = text.replacing("\n", with: "\r\n")
        text.withUTF8 { unsafe submitHead(id, $0, ends: ends) }
    }
    func request(_ text: String, isSecure: Bool = false, ends: Bool = true) -> Int32? {
        var text = text.replacing("\n", with: "\r\n")
        return text.withUTF8 { unsafe submitRequest($0, isSecure: isSecure, ends: ends) }
    }
    func body(_ id: Int32, _ text: String) {
        var text = text
        text.withUTF8 { unsafe send(id, $0) }
    }
    func finish(_ id: Int32, trailers: String = "") {
        var text = trailers.replacing("\n", with: "\r\n")
        text.withUTF8 { unsafe end(id, trailers: $0) }
    }

    /// A server that has received the client's preface.
    static func establishedServer(_ options: HTTP2Options = HTTP2Options()) throws -> HTTP2Session {
        let server = try HTTP2Session.server(options)
        server.take(Raw.preface)
        _ = server.output()
        return server
    }

    /// A client that has received the server's preface.
    static func establishedClient(_ options: HTTP2Options = HTTP2Options()) throws -> HTTP2Session {
        let client = try HTTP2Session.client(options)
        _ = client.output()
        client.take(Raw.settings() + Raw.settingsAcknowledgement)
        _ = client.output()
        return client
    }
}

/// The two ends of a connection.
struct Pair {
    let client: HTTP2Session
    let server: HTTP2Session

    init(client: HTTP2Options = HTTP2Options(), server: HTTP2Options = HTTP2Options()) throws {
        self.client = try HTTP2Session.client(client)
        self.server = try HTTP2Session.server(server)
        _ = exchange()
    }

    /// Transfers bytes both ways until there are no more.
    func exchange() -> (client: [Seen], server: [Seen]) {
        var atClient: [Seen] = []
        var atServer: [Seen] = []
        while client.hasOutput || server.hasOutput {
            atServer += server.take(client.output(upTo: 65536)).events
            atClient += client.events()
            atClient += client.take(server.output(upTo: 65536)).events
            atServer += server.events()
        }
        return (atClient, atServer)
    }
}
