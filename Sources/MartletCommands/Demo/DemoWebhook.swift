internal import MartletCore
private import MartletJSON
internal import MartletResponder

/// The receiver of the demo's webhook: it accepts every event, and lists the latest.
///
/// - `POST /events` is where the gateway sends them.
/// - `GET /events` lists them, the oldest first; with `?until=account.deleted` as soon as there is one of that type.
final class DemoWebhook: Sendable {
    static let path = "/events"

    private static let maximumEvents = 100
    private static let maximumWait = Duration.seconds(5)
    private static let pollInterval = Duration.milliseconds(20)
    private static let limits = JSONLimits(maximumDepth: 8, maximumBytes: LocalLimits.bodyBytes)

    private let clock: Clock
    private let events = Lock<[JSONValue]>([])

    init(clock: Clock) { self.clock = clock }

    func handle(_ request: LocalRequest) async -> LocalResponse {
        guard request.path == Self.path else { return .text(404, "text/plain", "only \(Self.path) exists\n") }
        guard request.method == "POST" else { return await list(until: Self.type(in: request.query)) }
        guard let event = try? JSON.parse(request.body, limits: Self.limits) else {
            return .text(400, "text/plain", "not JSON\n")
        }
        events.withLock { events in
            if events.count == Self.maximumEvents { events.removeFirst() }
            events.append(event)
        }
        return LocalResponse(status: 204, fields: [], body: [])
    }

    private func list(until type: String?) async -> LocalResponse {
        let deadline = clock.monotonicTime + Self.maximumWait
        while let type, clock.monotonicTime < deadline, !events.withLock({ $0.contains { Self.is($0, type) } }) {
            // Cancellation ends the wait.
            guard (try? await Task.sleep(for: Self.pollInterval)) != nil else { break }
        }
        let lines = events.withLock { $0 }.map { String(decoding: JSON.write($0), as: UTF8.self) + "\n" }
        return .text(200, "application/jsonl", lines.joined())
    }

    private static func `is`(_ event: JSONValue, _ type: String) -> Bool {
        event.object?["type"]?.string == "dev.martlet.\(type)"
    }

    private static func type(in query: String) -> String? {
        query.hasPrefix("until=") ? String(query.dropFirst("until=".count)) : nil
    }
}
