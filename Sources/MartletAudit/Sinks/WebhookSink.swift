package import MartletCore
package import MartletCrypto

/// A server that gets lines by HTTP.
package struct AuditWebhook: Sendable {
    package let url: String
    package let signer: WebhookSigner?
    package let timeout: Duration
    package let client: any HTTPCalling

    package init(url: String, signer: WebhookSigner?, timeout: Duration, client: any HTTPCalling) {
        self.url = url
        self.signer = signer
        self.timeout = timeout
        self.client = client
    }
}

/// Posts lines as NDJSON, several at a time. The same lines may arrive twice: their numbers tell.
final class WebhookSink: AuditSink {
    private static let maximumResponseBytes = 16 * 1024
    private static let idDigits = 32

    private let webhook: AuditWebhook
    private let clock: Clock

    init(_ webhook: AuditWebhook, clock: Clock) {
        self.webhook = webhook
        self.clock = clock
    }

    let name = "webhook"
    /// Longer than a collector needs to start again: meanwhile events wait in the queue, which is bounded.
    let retryLimit = Duration.seconds(300)
    let isCertain = false

    func open() throws(AuditError) -> AuditStart { .new(torn: nil) }

    func write(_ lines: ArraySlice<OutputLine>, until isOver: @Sendable () -> Bool) -> WriteOutcome {
        var body: [UInt8] = []
        for line in lines { body += line.bytes + [0x0A] }
        let id = "audit-" + AuditChain.hash(body).prefix(Self.idDigits)
        let headers = webhook.signer?.headers(id: id, at: clock.unixTime, body: body) ?? [("webhook-id", id)]
        let call = HTTPCall(
            webhook.url, content: .body(body, type: "application/x-ndjson"), headers: headers,
            timeout: webhook.timeout, maximumBytes: Self.maximumResponseBytes, isRepeatable: true)
        guard let reason = send(call, until: isOver) else { return .written }
        return .failed(written: 0, AuditError(.auditNotWritten, "webhook: \(reason)"))
    }

    /// - Returns: why the lines were not taken; `nil` if they were.
    private func send(_ call: HTTPCall, until isOver: @Sendable () -> Bool) -> String? {
        let result = AwaitedResult()
        let client = webhook.client
        let task = Task {
            do throws(HTTPCallError) {
                result.finish(Self.rejection(try await client.send(call)))
            } catch {
                result.finish("\(error.code): \(error.message)")
            }
        }
        while true {
            if let outcome = result.wait(milliseconds: 100) { return outcome.reason }
            if isOver() {
                task.cancel()
                return "no response in time"
            }
        }
    }

    /// Why a response does not mean that the lines were taken: a page of a proxy or of a portal is none.
    static func rejection(_ response: HTTPCallResponse) -> String? {
        guard (200..<300).contains(response.status) else { return "status \(response.status)" }
        let first = response.body.first { ![0x20, 0x09, 0x0A, 0x0D, 0xEF, 0xBB, 0xBF].contains($0) }
        return first == UInt8(ascii: "<") ? "the response is a page" : nil
    }

    func close() {}
}

/// Blocks a thread until a task has a result.
private final class AwaitedResult: Sendable {
    struct Outcome: Sendable {
        let reason: String?
    }

    private let outcome = Lock<Outcome?>(nil)
    private let signal = ThreadSignal()

    func finish(_ reason: String?) {
        outcome.withLock { $0 = Outcome(reason: reason) }
        signal.wake()
    }

    /// - Returns: `nil` after the time.
    func wait(milliseconds: Int32) -> Outcome? {
        _ = signal.wait(milliseconds: milliseconds)
        return outcome.withLock { $0 }
    }
}
