private import MartletCore

extension WebhookConfiguration: ConfigurationDecodable {
    private static let timeouts = Duration.milliseconds(100)...Duration.seconds(60)
    private static let ages = Duration.seconds(1)...Duration.longestConfigured

    package static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .required("name", .text, "The name in logs, metrics and commands."),
            .required("url", .url, "Where events are posted: https, or http of a loopback address."),
            .required(
                "events", .list(.text, nonEmpty: true),
                "Types of events, such as `account.created`, `account.*`, or `*` for all but `login.*`."),
            .optional("timeout", .duration, default: "5s", "The timeout of one delivery."),
            .optional("max_age", .duration, default: "7d", "The age after which an event is not retried."),
        ]).withSecret("secret", required: true, "The signing key: `whsec_` and 24 to 64 bytes in base64.")
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        timeout = reader.optional("timeout", default: .seconds(5), in: Self.timeouts)
        maximumAge = reader.optional("max_age", default: .seconds(7 * 86_400), in: Self.ages)
        name = try reader.required("name")
        url = try reader.required("url")
        events = try reader.required("events")
        secret = try reader.secret("secret")
        guard url.value.isTrustworthy else {
            throw ConfigurationError(
                .configBadURL, at: url.location, "url: must be https, or http of a loopback address")
        }
    }
}

extension OutboxConfiguration: ConfigurationDecodable {
    private static let rows = 100...100_000_000

    package static var grammar: ConfigurationGrammar? {
        .init([
            .optional(
                "max_rows", .integer(rows), default: "1000000",
                "The maximum number of events; above it the oldest are removed, `login.*` first.")
        ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        self.init()
        maximumRows = reader.optional("max_rows", default: maximumRows, in: Self.rows)
    }
}
