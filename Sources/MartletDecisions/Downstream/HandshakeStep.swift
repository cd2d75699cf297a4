package import MartletCore
package import MartletTLS

/// A step of a TLS handshake that runs on a thread, which owns the engine meanwhile.
// @unchecked Sendable: it is passed from the loop to a thread and back through queues that order the accesses.
package final class HandshakeStep: @unchecked Sendable {
    package var engine: TLSEngine?
    package var plaintext = ByteBuffer()
    package private(set) var failure: TLSError?
    package private(set) var hasRun = false
    private let input: [UInt8]

    package init(_ engine: consuming TLSEngine, input: [UInt8]) {
        self.engine = consume engine
        self.input = input
    }

    /// Feeds the engine.
    package func run() {
        hasRun = true
        do throws(TLSError) {
            try unsafe input.withUnsafeBufferPointer { bytes throws(TLSError) in
                try unsafe engine?.receive(bytes, plaintext: &plaintext)
            }
        } catch {
            failure = error
        }
    }
}
