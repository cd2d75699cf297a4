import MartletTesting

/// A message as gRPC frames it: not compressed, its length, its bytes.
func message(_ text: String) -> [UInt8] {
    let count = text.utf8.count
    return [0] + [24, 16, 8, 0].map { UInt8(count >> $0 & 0xFF) } + Array(text.utf8)
}

/// The head of a call.
func call(_ method: String, _ more: [String] = []) -> [String] {
    ["POST \(method) HTTP/1.1", "Host: localhost", "Content-Type: application/grpc"] + more
}

/// A server of gRPC that speaks bytes: `/…/Echo` echoes each message, `/…/Fail` responds with status 9, `/…/Silent`
/// sends only the head.
final class GRPCUpstream: Sendable {
    private let listener: Listener
    /// The heads of the calls so far, as HTTP/1 text.
    let heads = Box<[String]>([])
    /// Streams that were reset by their caller.
    let resets = Box(0)

    init() throws {
        listener = try Listener(on: .loopback(0))
        let (listener, heads, resets) = (self.listener, self.heads, self.resets)
        _ = Background {
            while let socket = listener.accept() {
                _ = Background { try? Self.serve(socket, heads, resets) }
            }
        }
    }

    deinit { listener.close() }

    var url: String { "h2c://\(listener.endpoint)" }

    private static func serve(_ socket: RawSocket, _ heads: Box<[String]>, _ resets: Box<Int>) throws {
        let peer = try HTTP2Peer(serving: socket)
        var begun: Set<Int32> = []
        var done: Set<Int32> = []
        var answered: [Int32: Int] = [:]
        while true {
            let seen = peer.streams.mapValues { ($0.messages.count, $0.hasEnded, $0.reset != nil) }
            try peer.wait(for: "more", within: .seconds(60)) {
                peer.streams.contains { id, stream in
                    guard let known = seen[id] else { return true }
                    return known != (stream.messages.count, stream.hasEnded, stream.reset != nil)
                }
            }
            for (id, stream) in peer.streams where !done.contains(id) {
                if begun.insert(id).inserted {
                    heads.withLock { $0.append(stream.head) }
                    try peer.respond(id, ["HTTP/1.1 200 OK", "Content-Type: application/grpc", "X-Start: yes"])
                }
                let isSilent = stream.head.contains("/Silent ")
                for text in isSilent ? [] : stream.messages.dropFirst(answered[id, default: 0]) {
                    try peer.send(id, message(String(decoding: text, as: UTF8.self) + "!"))
                }
                answered[id] = stream.messages.count
                if stream.reset != nil {
                    resets.withLock { $0 += 1 }
                    done.insert(id)
                } else if stream.hasEnded, !isSilent {
                    let status = stream.head.contains("/Fail ") ? "9\r\ngrpc-message: not%20now" : "0"
                    try peer.end(id, trailers: "grpc-status: \(status)\r\nx-end: yes\r\n")
                    done.insert(id)
                }
            }
        }
    }
}
