internal import MartletCore
internal import MartletJSON

/// Sends notifications to their receiver, one after the other.
struct NotificationSender {
    private static let maximumResponse = 16 * 1024
    private static let shownBytes = 1024

    let http: any HTTPCalling

    /// Sends a notification as often as requested, until the deadline of the request.
    /// - Returns: what the receiver responded.
    func send(_ request: NotificationRequest) async -> JSONObject {
        let deadline = ContinuousClock.now + .milliseconds(NotificationRequest.maximumTimeout)
        var statuses: [JSONValue] = []
        var last: JSONObject = [:]
        for _ in 0..<request.times {
            let timeout = min(request.timeout, deadline - ContinuousClock.now)
            guard timeout > .zero else { break }
            last = await send(request, timeout: timeout)
            statuses.append(last["status"] ?? 0)
        }
        var response: JSONObject = [
            "jti": request.id.map { .string($0) } ?? .null, "payload": .string(request.payload),
            "statuses": .array(statuses),
        ]
        for member in last.members { response[member.name] = member.value }
        return response
    }

    private func send(_ request: NotificationRequest, timeout: Duration) async -> JSONObject {
        let call = HTTPCall(
            request.url, content: Self.content(request), timeout: timeout, maximumBytes: Self.maximumResponse)
        do throws(HTTPCallError) {
            let response = try await http.send(call)
            let text = String(decoding: response.body.prefix(Self.shownBytes), as: UTF8.self)
            return ["status": .integer(Int64(response.status)), "body": .string(text), "error": .null]
        } catch {
            return ["status": 0, "body": .null, "error": .string(error.code.rawValue)]
        }
    }

    private static func content(_ request: NotificationRequest) -> HTTPCall.Content {
        if request.isForm { return .form([("payload", request.payload)]) }
        return .body(JSON.write(JSONObject([("payload", .string(request.payload))])), type: "application/json")
    }
}
