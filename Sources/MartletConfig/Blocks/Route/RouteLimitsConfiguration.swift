/// `limits` of a route, but for its body.
@frozen package struct RouteLimitsConfiguration: Sendable {
    package var rates: [Located<String>] = []
    package var announces = false
    package var concurrency: Int?

    package init() {}

    /// Whether there is none.
    package var isEmpty: Bool { rates.isEmpty && concurrency == nil }

    /// The state of a decision about all of them has a fixed size.
    package static let maximumRates = 8

    /// The keys of `limits:` that set it.
    static let keys: [ConfigurationKey<RouteLimits>] = [
        .key(
            "rate", \.others.rates, as: NonEmpty<Located<String>>.self,
            "The rate limits of its requests: names in `rate_limits`."),
        .key(
            "announce", \.others.announces,
            "Whether every response has `RateLimit-Policy` and `RateLimit`, not only that of a limited request."),
        .key(
            "concurrency", \.others.concurrency, in: 1...1_000_000,
            "Requests that may be under way at a time, over all event loops; unlimited if absent."),
        .check { limits, reader in
            if limits.others.announces, !reader.has("rate") {
                reader.reject("announce", .configMissingKey, "needs rate, whose limits responses tell")
            }
            guard let first = limits.others.rates.dropFirst(maximumRates).first else { return }
            reader.error(.configTooLarge, at: first.location, "rate: a route has at most \(maximumRates) rate limits")
        },
    ]
}
