import MartletCore
import MartletTesting

@testable import MartletTLS

/// One end of a connection in memory, with what it has heard.
struct EnginePeer: ~Copyable {
    var engine: TLSEngine
    var plaintext = ByteBuffer()

    init(_ engine: consuming TLSEngine) { self.engine = engine }

    mutating func output() -> [UInt8] {
        var wire = ByteBuffer()
        engine.takeCiphertext(into: &wire)
        return wire.array
    }

    mutating func take(_ bytes: [UInt8], pieces: Int = .max) throws(TLSError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = Array(rest.prefix(pieces))
            rest = rest.dropFirst(pieces)
            try unsafe piece.withUnsafeBufferPointer { piece throws(TLSError) in
                try unsafe engine.receive(piece, plaintext: &plaintext)
            }
        }
    }

    mutating func say(_ bytes: [UInt8]) throws(TLSError) {
        try unsafe bytes.withUnsafeBufferPointer { bytes throws(TLSError) in try unsafe engine.send(bytes) }
    }
}

/// A client and a server of ours that talk to each other in memory.
struct EnginePair: ~Copyable {
    var client: EnginePeer
    var server: EnginePeer
    /// How many bytes either side gets at once.
    var pieces = Int.max
    /// What each side refused.
    private(set) var clientFailure: TLSError?
    private(set) var serverFailure: TLSError?

    init(_ client: consuming TLSEngine, _ server: consuming TLSEngine) throws(TLSError) {
        self.client = EnginePeer(client)
        self.server = EnginePeer(server)
        try self.client.engine.start()
    }

    /// Passes bytes to and fro until neither side has more to say; failures are kept, and their alerts delivered.
    mutating func talk() {
        while true {
            let sent = client.output()
            if !sent.isEmpty, serverFailure == nil {
                do throws(TLSError) { try server.take(sent, pieces: pieces) } catch { serverFailure = error }
            }
            let answer = server.output()
            if !answer.isEmpty, clientFailure == nil {
                do throws(TLSError) { try client.take(answer, pieces: pieces) } catch { clientFailure = error }
            }
            if sent.isEmpty, answer.isEmpty { return }
        }
    }

    var areEstablished: Bool { client.engine.isEstablished && server.engine.isEstablished }
}
