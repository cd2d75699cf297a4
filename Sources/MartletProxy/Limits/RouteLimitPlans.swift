package import MartletConfig
internal import MartletLimits
internal import MartletRouter

/// The limits on requests of all routes, and what they count: shared by all loops, and kept by a reload.
package struct RouteLimitPlans: Sendable {
    /// The buckets of a limit are kept for as long as these stay the same.
    private struct TableLabel: Hashable {
        let name: String
        let keys: [RateLimitConfiguration.Key]
        let entries: Int
    }

    let plans: [RouteLimitPlan]
    /// Whether any of them counts by the caller.
    let needCaller: Bool
    /// Whether any of them announces what is left.
    let announce: Bool
    /// The index of the plan of a route, by its name.
    private let indices: [String: Int]
    private let tables: [TableLabel: RateTable]
    /// Never removed, since exchanges refer to them unretained; by the name of the route.
    private let counters: [String: ConcurrencyCounter]

    /// No limits.
    package init() {
        (plans, needCaller, announce, indices, tables, counters) = ([], false, false, [:], [:], [:])
    }

    /// - Parameter previous: of the configuration that is replaced.
    package init(_ routes: [RouteConfiguration], _ server: ServerConfiguration, previous: RouteLimitPlans?) {
        let limits = Dictionary(server.rateLimits.map { ($0.name.value, $0) }, uniquingKeysWith: { first, _ in first })
        var plans: [RouteLimitPlan] = []
        var indices: [String: Int] = [:]
        var tables: [TableLabel: RateTable] = [:]
        var counters = previous?.counters ?? [:]
        for route in routes where !route.limits.isEmpty {
            let name = route.name.value
            let planned = route.limits.rates.compactMap { limits[$0.value] }.map { limit in
                let label = TableLabel(name: limit.name.value, keys: limit.keys, entries: server.limits.rateEntries)
                let table = tables[label] ?? previous?.tables[label] ?? RateTable(entries: label.entries)
                tables[label] = table
                return PlannedLimit(limit, route: name, table: table)
            }
            let counter = counters[name] ?? ConcurrencyCounter()
            counters[name] = counter
            indices[name] = plans.count
            plans.append(RouteLimitPlan(planned, route.limits, counter: counter))
        }
        self.plans = plans
        self.indices = indices
        self.tables = tables
        self.counters = counters
        needCaller = plans.contains { $0.countBeforeCaller < $0.limits.count }
        announce = plans.contains(where: \.announces)
    }

    /// The index of a route's plan; −1 without one.
    func index(of route: Route) -> Int { route.mount >= 0 ? -1 : indices[route.name] ?? -1 }
}
