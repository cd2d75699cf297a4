package import MartletCore

/// One entry of `webhooks:`.
@frozen package struct WebhookConfiguration: KeyedBlock {
    package var name = Located<String>.unread
    package var url = Located<URLText>.unread
    /// The signing key in base64, as text; MartletEvents decodes it.
    package var secret = Located<Secret>.unread
    /// Patterns of event types, as text; MartletEvents parses them.
    package var events = NonEmpty(Located<String>.unread)
    package var timeout = Duration.seconds(5)
    package var maximumAge = Duration.seconds(7 * 86_400)

    static let keys: [ConfigurationKey<Self>] = [
        .required("name", \.name, endsBlock: true, "The name in logs, metrics and commands."),
        .required("url", \.url, endsBlock: true, "Where events are posted: https, or http of a loopback address."),
        .required(
            "events", \.events.list, as: NonEmpty<Located<String>>.self, endsBlock: true,
            "Types of events, such as `account.created`, `account.*`, or `*` for all but `login.*`."),
        .key("timeout", \.timeout, in: .milliseconds(100) ... .seconds(60), "The timeout of one delivery."),
        .key(
            "max_age", \.maximumAge, in: .seconds(1)...Duration.longestConfigured,
            "The age after which an event is not retried."),
        .requiredSecret("secret", \.secret, "The signing key: `whsec_` and 24 to 64 bytes in base64."),
        .check { block, _ throws(ConfigurationError) in try block.url.checkTrust() },
    ]
}

extension NonEmpty {
    fileprivate var list: [Element] {
        get { elements }
        set { self = NonEmpty(newValue) ?? self }
    }
}

extension Located<URLText> {
    /// What a required URL is before it was read.
    static var unread: Self { Self("http://[::]/", at: .none) }

    /// - Throws: `config.bad_url` for one whose responses could be forged.
    func checkTrust() throws(ConfigurationError) {
        guard value.isTrustworthy else {
            throw ConfigurationError(
                .configBadURL, at: location, "url: must be https, or http of a loopback address")
        }
    }
}

/// `outbox:` — the bounds of the queue of events.
@frozen package struct OutboxConfiguration: KeyedBlock, Equatable {
    package var maximumRows = 1_000_000

    static let keys: [ConfigurationKey<Self>] = [
        .key(
            "max_rows", \.maximumRows, in: 100...100_000_000,
            "The maximum number of events; above it the oldest are removed, `login.*` first.")
    ]
}
