internal import MartletCore
internal import MartletProvider
internal import MartletResponder

/// Serves the simulator of a plugin: whatever its handler throws or returns, the client gets a response.
final class PluginSimulatorService: Sendable {
    /// The largest body of a response, in bytes.
    private static let maximumBytes = 1024 * 1024
    private static let maximumHeaders = 64
    private static let maximumHeaderBytes = 16 * 1024

    private let logger: Logger
    private let handler = Lock<Simulator.Handler?>(nil)

    /// - Parameter logger: gets the errors of the handler.
    init(_ logger: Logger) { self.logger = logger }

    /// Sets the handler, which is made when the port is known.
    func serve(_ handler: @escaping Simulator.Handler) { self.handler.withLock { $0 = handler } }

    /// The handler's response; 500 where there is none that could be sent, 413 for a body that is too large.
    func handle(_ request: LocalRequest) async -> LocalResponse {
        guard request.bodyBytes == request.body.count else {
            return .text(413, "text/plain", "the body is too large\n")
        }
        guard let handler = handler.withLock({ $0 }) else { return .text(503, "text/plain", "not started\n") }
        do {
            let response = try await handler(
                SimulatedRequest(
                    method: request.method, path: request.path, query: request.query, headers: request.fields,
                    body: request.body))
            if let fault = Self.fault(of: response) { return failed(request, fault) }
            return LocalResponse(status: response.status, fields: response.headers, body: response.body)
        } catch {
            return failed(request, "\(error)")
        }
    }

    private func failed(_ request: LocalRequest, _ reason: String) -> LocalResponse {
        logger.error("simulator failed", ("path", request.path), ("reason", String(reason.prefix(500))))
        return .text(500, "text/plain", "the simulator failed; the log has the reason\n")
    }

    /// Why a response cannot be sent; `nil` if it can.
    private static func fault(of response: SimulatedResponse) -> String? {
        guard (200...599).contains(response.status) else { return "status \(response.status)" }
        guard response.body.count <= maximumBytes else { return "a body of \(response.body.count) bytes" }
        guard response.headers.count <= maximumHeaders else { return "\(response.headers.count) headers" }
        for (name, value) in response.headers {
            guard !name.isEmpty, name.utf8.allSatisfy(isOfToken) else { return "a header whose name is no token" }
            guard !framing.contains(name.lowercased()) else { return "the header \(name), which the demo sets" }
            guard value.utf8.count <= maximumHeaderBytes,
                value.utf8.allSatisfy({ ($0 >= 0x20 && $0 != 0x7F) || $0 == 0x09 })
            else { return "the header \(name) has control characters, or is too long" }
        }
        return nil
    }

    private static let framing = ["content-length", "transfer-encoding", "connection", "upgrade", "trailer", "date"]

    /// A character of a token (RFC 9110 §5.6.2).
    private static func isOfToken(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}
