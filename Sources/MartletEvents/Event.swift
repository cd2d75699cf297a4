internal import MartletCore
package import MartletJSON

/// Something that happened to an account, for other systems.
package struct Event: Sendable, Equatable {
    /// Unique; receivers use it to detect repeated deliveries.
    package let id: String
    package let type: EventType
    /// The account's subject. Events of one subject are delivered in order.
    package let subject: String
    /// Milliseconds since 1970.
    package let time: Int64
    package let data: JSONObject

    package init(id: String, type: EventType, subject: String, time: Int64, data: JSONObject) {
        self.id = id
        self.type = type
        self.subject = subject
        self.time = time
        self.data = data
    }

    /// The event as a CloudEvent 1.0 in structured mode (`application/cloudevents+json`).
    /// - Parameter source: the `source` of the CloudEvent, a URI reference.
    package func cloudEvent(source: String) -> [UInt8] {
        let event: JSONObject = [
            "specversion": .string("1.0"),
            "id": .string(id),
            "source": .string(source),
            "type": .string(type.cloudEventType),
            "subject": .string(subject),
            "time": .string(InternetTime.text(milliseconds: time)),
            "datacontenttype": .string("application/json"),
            "data": .object(data),
        ]
        return JSON.write(event)
    }
}
