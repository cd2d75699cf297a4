internal import MartletConfig
internal import MartletCore
internal import MartletExplain
internal import MartletJSON
internal import MartletRouter

/// The limits of the matching route, which an explanation does not count.
extension ExplanationPage {
    private var routeLimits: RouteLimitsConfiguration {
        guard let route = explanation.route, route.mount < 0 else { return RouteLimitsConfiguration() }
        return configuration.routes.first { $0.name.value.hasSameBytes(as: route.name) }?.limits
            ?? RouteLimitsConfiguration()
    }

    private var rateLimits: [RateLimitConfiguration] {
        routeLimits.rates.compactMap { name in
            configuration.server.rateLimits.first { $0.name.value.hasSameBytes(as: name.value) }
        }
    }

    var limitLines: [String] {
        var lines = rateLimits.map { limit in
            let keys = limit.keys.map(\.text).joined(separator: ", ")
            let scope = limit.isShared ? ", over all instances" : ""
            return "\(limit.name.value): \(limit.rate.text) by \(keys), at most \(limit.burst) at a time\(scope)"
        }
        if let concurrency = routeLimits.concurrency { lines.append("\(concurrency) requests under way at a time") }
        return lines
    }

    var limits: JSONValue {
        [
            "rate": .array(
                rateLimits.map { limit in
                    [
                        "name": .string(limit.name.value), "rate": .string(limit.rate.text),
                        "burst": .integer(Int64(limit.burst)), "shared": .bool(limit.isShared),
                        "key": .array(limit.keys.map { .string($0.text) }),
                    ]
                }),
            "concurrency": routeLimits.concurrency.map { .integer(Int64($0)) } ?? .null,
        ]
    }
}
