internal import MartletCore
internal import MartletJSON
internal import MartletResponder

/// A request to send a notification, parsed strictly.
///
/// `url`, `type` and `audience` are required; `subject` and `event_time` (milliseconds) describe the event, and `event`
/// overrides its members with any JSON. `jti` sets the id (`null`: none), `events_as` is `string`, `object`, `array` or
/// `none`, `claims` overrides claims (`null` leaves one out), `forged` signs with an unpublished key, `padding` makes it
/// larger. A `payload` replaces all of that. `form` sends a form instead of JSON, `times` repeats it, `timeout` is the
/// deadline of each call in milliseconds, and with `apply` the simulated Apple changes the state of the user, too.
struct NotificationRequest {
    private static let names = [
        "url", "type", "audience", "subject", "event_time", "event", "jti", "events_as", "claims", "forged", "padding",
        "payload", "form", "times", "timeout", "apply",
    ]
    private static let maximumPadding: Int64 = 1024 * 1024
    private static let maximumTimes: Int64 = 100
    /// In milliseconds; below the time after which a local handler counts as failed.
    static let maximumTimeout: Int64 = 9000
    private static let standardTimeout: Int64 = 5000

    let url: String
    let payload: String
    let isForm: Bool
    let times: Int
    let timeout: Duration
    /// `nil` unless it is to be applied to the user.
    let applied: (subject: String, type: String)?
    /// The id in the response.
    let id: String?

    init(_ request: LocalRequest, simulator: AppleSimulator) throws(RequestError) {
        let input = try SimulatorRequest(request, members: Self.names)
        url = try input.requiredText("url")
        isForm = try input.flag("form") ?? false
        times = Int(try input.number("times", in: 1...Self.maximumTimes) ?? 1)
        timeout = .milliseconds(
            try input.number("timeout", in: 1...Self.maximumTimeout, unit: " of milliseconds") ?? Self.standardTimeout)
        if let payload = try input.text("payload") {
            guard try !(input.flag("apply") ?? false) else {
                throw RequestError("'apply' requires a 'type', not a 'payload'")
            }
            self.payload = payload
            (applied, id) = (nil, nil)
            return
        }
        let notification = try Self.notification(in: input, simulator: simulator)
        guard let payload = try? notification.payload(from: simulator) else {
            throw RequestError("signing the notification failed", .unavailable)
        }
        self.payload = payload
        id = notification.id
        applied =
            try input.flag("apply") ?? false
            ? (notification.event["sub"]?.string ?? "", notification.event["type"]?.string ?? "") : nil
    }

    private static func notification(
        in input: SimulatorRequest, simulator: AppleSimulator
    ) throws(RequestError) -> AppleNotification {
        let time = try input.number("event_time", in: Int64.min...Int64.max) ?? simulator.clock.unixMilliseconds
        let (type, audience) = (try input.requiredText("type"), try input.requiredText("audience"))
        let subject = try input.text("subject") ?? TokenRequest.standardSubject
        guard
            var notification = try? AppleNotification(type: type, audience: audience, subject: subject, time: time)
        else { throw RequestError("no random bytes", .unavailable) }
        for member in try input.members("event")?.members ?? [] {
            notification.event[member.name] = member.value == .null ? JSONValue?.none : member.value
        }
        if input.object["jti"] == .null {
            notification.id = nil
        } else if let id = try input.text("jti") {
            notification.id = id
        }
        if let name = try input.text("events_as") {
            guard let form = AppleNotification.EventsForm(rawValue: name) else {
                let names = AppleNotification.EventsForm.allCases.map(\.rawValue).joined(separator: ", ")
                throw RequestError("'events_as' is not one of \(names)")
            }
            notification.eventsForm = form
        }
        notification.changes = try input.members("claims") ?? [:]
        notification.isForged = try input.flag("forged") ?? false
        notification.padding = Int(try input.number("padding", in: 0...maximumPadding, unit: " of bytes") ?? 0)
        return notification
    }
}
