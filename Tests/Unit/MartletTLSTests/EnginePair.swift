import MartletCore
import MartletTesting

@testable import MartletTLS

/// One end of a connection in memory, with the plaintext it has received.
struct EnginePeer: ~Copyable {
    var engine: TLSEngine
    var plaintext = ByteBuffer()

    init(_ engine: consuming TLSEngine) { self.engine = engine }

    mutating func output() -> [UInt8] {
        var ciphertext = ByteBuffer()
        engine.dequeueCiphertext(into: &ciphertext)
        return ciphertext.array
    }

    mutating func receive(_ bytes: [UInt8], pieces: Int = .max) throws(TLSError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = Array(rest.prefix(pieces))
            rest = rest.dropFirst(pieces)
            try unsafe piece.withUnsafeBufferPointer { piece throws(TLSError) in
                try unsafe engine.receive(piece, plaintext: &plaintext)
            }
        }
    }

    mutating func send(_ bytes: [UInt8]) throws(TLSError) {
        try unsafe bytes.withUnsafeBufferPointer { bytes throws(TLSError) in try unsafe engine.send(bytes) }
    }
}

/// A client and a server engine that are connected in memory.
struct EnginePair: ~Copyable {
    var client: EnginePeer
    var server: EnginePeer
    /// The maximum number of bytes passed per call.
    var pieces = Int.max
    /// The error of each side.
    private(set) var clientFailure: TLSError?
    private(set) var serverFailure: TLSError?

    init(_ client: consuming TLSEngine, _ server: consuming TLSEngine) throws(TLSError) {
        self.client = EnginePeer(client)
        self.server = EnginePeer(server)
        try self.client.engine.start()
    }

    /// Passes bytes in both directions until neither side has output; errors are recorded, and their alerts delivered.
    mutating func exchange() {
        while true {
            let sent = client.output()
            if !sent.isEmpty, serverFailure == nil {
                do throws(TLSError) { try server.receive(sent, pieces: pieces) } catch { serverFailure = error }
            }
            let response = server.output()
            if !response.isEmpty, clientFailure == nil {
                do throws(TLSError) { try client.receive(response, pieces: pieces) } catch { clientFailure = error }
            }
            if sent.isEmpty, response.isEmpty { return }
        }
    }

    var areEstablished: Bool { client.engine.isEstablished && server.engine.isEstablished }
}
