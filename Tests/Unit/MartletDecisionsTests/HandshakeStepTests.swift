import MartletCore
import MartletTLS
import MartletTesting
import Testing

@testable import MartletDecisions

/// A server's and a client's context that trust each other, shared by all tests: making certificates is slow.
private struct StepContexts: Sendable {
    let server: TLSServerContext
    let client: TLSClientContext

    init() throws {
        let authority = try CertificateAuthority()
        let issued = try authority.issue("a", ["DNS:a.example.com"])
        server = try TLSServerContext(
            TLSServerOptions(
                identities: [TLSIdentityFiles(certificateFile: issued.certificateFile, keyFile: issued.keyFile)]),
            tickets: TLSTicketKeys(clock: .system))
        client = try TLSClientContext(TLSClientOptions(trust: .file(authority.certificateFile)))
    }

    static let shared = Result { try StepContexts() }
}

@Suite struct HandshakeStepTests {
    private let contexts: StepContexts

    init() throws { contexts = try StepContexts.shared.get() }

    private func client() throws -> TLSEngine {
        var engine = try contexts.client.makeEngine(serverName: "a.example.com")
        try engine.start()
        return engine
    }

    /// What an engine has to send.
    private func flight(of engine: inout TLSEngine) -> [UInt8] {
        var bytes = ByteBuffer()
        engine.dequeueCiphertext(into: &bytes)
        return bytes.array
    }

    private func receive(_ bytes: [UInt8], by engine: inout TLSEngine) throws {
        var plaintext = ByteBuffer()
        try unsafe bytes.withUnsafeBufferPointer { bytes throws(TLSError) in
            try unsafe engine.receive(bytes, plaintext: &plaintext)
        }
    }

    /// Takes the engine out of a step that has finished.
    private func engine(of step: HandshakeStep) throws -> TLSEngine {
        var lent: TLSEngine?
        swap(&lent, &step.engine)
        guard let engine = lent else { throw TestFailure("the step has no engine") }
        return engine
    }

    @Test func `a step that has not run has changed nothing`() throws {
        var client = try client()
        let step = HandshakeStep(try contexts.server.makeEngine(), input: flight(of: &client))
        let (hasRun, failure, plaintext) = (step.hasRun, step.failure, step.plaintext.array)
        #expect(!hasRun && failure == nil && plaintext == [])
        let server = try engine(of: step)
        let hasOutput = server.hasCiphertext
        #expect(!hasOutput)
    }

    @Test func `two steps complete a handshake, and decrypt what came with its end`() throws {
        var client = try client()
        let first = HandshakeStep(try contexts.server.makeEngine(), input: flight(of: &client))
        first.run()
        #expect(first.hasRun && first.failure == nil)
        var server = try engine(of: first)
        let isHalf = server.isEstablished
        try receive(flight(of: &server), by: &client)
        let request = Array("GET / HTTP/1.1\r\n\r\n".utf8)
        try unsafe request.withUnsafeBufferPointer { request throws(TLSError) in try unsafe client.send(request) }
        let second = HandshakeStep(consume server, input: flight(of: &client))
        second.run()
        let plaintext = second.plaintext.array
        #expect(!isHalf && second.hasRun && second.failure == nil && plaintext == request)
        let established = try engine(of: second)
        let isEstablished = established.isEstablished
        #expect(isEstablished)
    }

    @Test func `a part of a hello is buffered without a reply`() throws {
        var client = try client()
        let step = HandshakeStep(try contexts.server.makeEngine(), input: Array(flight(of: &client).prefix(20)))
        step.run()
        let server = try engine(of: step)
        let hasOutput = server.hasCiphertext
        #expect(step.hasRun && step.failure == nil && !hasOutput)
    }

    @Test(
        arguments: [
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", .tlsHTTPRequest), ("PROXY TCP4 1.2.3.4 1.2.3.4 1 2\r\n", .tlsNotTLS),
        ] as [(String, ErrorCode)])
    func `bytes that are no handshake fail the step, with the reason`(_ text: String, _ expected: ErrorCode) throws {
        let step = HandshakeStep(try contexts.server.makeEngine(), input: Array(text.utf8))
        step.run()
        let (failure, plaintext) = (step.failure, step.plaintext.array)
        #expect(step.hasRun && failure?.code == expected && plaintext == [])
    }

    @Test func `a step without an engine runs without effect`() throws {
        var client = try client()
        let step = HandshakeStep(try contexts.server.makeEngine(), input: flight(of: &client))
        _ = try engine(of: step)
        step.run()
        let (failure, plaintext) = (step.failure, step.plaintext.array)
        let isGone = step.engine == nil
        #expect(step.hasRun && failure == nil && plaintext == [] && isGone)
    }
}
