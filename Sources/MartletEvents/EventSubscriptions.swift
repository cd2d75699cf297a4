/// Which webhooks get which events.
package struct EventSubscriptions: Sendable, Equatable {
    /// One webhook.
    package struct Subscriber: Sendable, Equatable {
        package let hook: String
        package let patterns: [EventPattern]

        package init(hook: String, patterns: [EventPattern]) {
            self.hook = hook
            self.patterns = patterns
        }
    }

    private let subscribers: [Subscriber]

    package init(_ subscribers: [Subscriber] = []) { self.subscribers = subscribers }

    /// The names of all webhooks.
    package var hooks: [String] { subscribers.map(\.hook) }

    /// The names of the webhooks that get events of a type.
    package func hooks(for type: EventType) -> [String] {
        subscribers.filter { $0.patterns.contains { $0.matches(type) } }.map(\.hook)
    }
}
