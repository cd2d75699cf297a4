internal import MartletCore
internal import MartletCrypto

/// Sends events to one webhook.
struct WebhookSender: EventSending {
    let hook: Webhook
    let client: any HTTPCalling
    let clock: Clock

    var name: String { hook.name }
    var retries: RetrySchedule { hook.retries }
    var concurrency: Int { WebhookDeliverer.concurrency }

    func send(_ event: Event) async -> DeliveryAttempt {
        let body = event.cloudEvent(source: hook.source)
        var call = HTTPCall(
            hook.url, content: .body(body, type: "application/cloudevents+json"),
            headers: hook.signer.headers(id: event.id, at: clock.unixTime, body: body), timeout: hook.timeout,
            maximumBytes: 0, isRepeatable: true)
        call.discardsBody = true
        do throws(HTTPCallError) {
            return DeliveryAttempt(try await client.send(call))
        } catch {
            return .failed(reason: "\(error.code): \(error.message)")
        }
    }
}

extension DeliveryAttempt {
    /// The result by the response of a webhook.
    init(_ response: HTTPCallResponse) {
        guard (200..<300).contains(response.status) else {
            self = .failed(reason: "\(ErrorCode.eventsStatus): status \(response.status)")
            return
        }
        self = .delivered
    }
}
