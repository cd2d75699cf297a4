package import MartletConfig
internal import MartletCore
package import MartletResponder
package import MartletRouter
package import MartletTraffic

/// The limits on requests of all routes, and what they count: shared by all loops, and kept by a reload.
package struct RouteLimitPlans: Sendable {
    /// The buckets of a limit are kept for as long as these stay the same.
    private struct TableLabel: Hashable {
        package let name: String
        package let keys: [RateLimitConfiguration.Key]
        package let entries: Int
        package let isShared: Bool
        package let isLocal: Bool
    }

    /// What `route` is for a limit of logins.
    private static let loginRoute = "martlet.sign_in"

    package let plans: [RouteLimitPlan]
    /// The limits of logins; `nil` without any.
    package let logins: RouteLimitPlan?
    /// Whether any of them counts by the caller.
    package let needCaller: Bool
    /// Whether any of them announces what is left.
    package let announce: Bool
    /// The index of the plan of a route, by its name.
    private let indices: [String: Int]
    private let tables: [TableLabel: LimitBuckets]
    /// Where shared limits count.
    private let client: StoreClient?
    /// Never removed, since exchanges refer to them unretained; by the name of the route.
    private let counters: [String: DividedCounter]

    /// No limits.
    package init() {
        (plans, needCaller, announce, indices, tables, counters) = ([], false, false, [:], [:], [:])
        (client, logins) = (nil, nil)
    }

    /// - Parameters:
    ///   - logins: the names of the limits of logins.
    ///   - store: where shared limits count.
    ///   - previous: of the configuration that is replaced.
    package init(
        _ routes: [RouteConfiguration], _ server: ServerConfiguration, logins: [String] = [],
        store: StoreClient? = nil, previous: RouteLimitPlans?
    ) {
        client = store
        let limits = Dictionary(server.rateLimits.map { ($0.name.value, $0) }, uniquingKeysWith: { first, _ in first })
        var plans: [RouteLimitPlan] = []
        var indices: [String: Int] = [:]
        var tables: [TableLabel: LimitBuckets] = [:]
        // What is known of another store is of no use.
        let known = (previous?.tables ?? [:]).filter { !$0.key.isShared || previous?.client === store }
        var counters = previous?.counters ?? [:]
        func plan(_ limit: RateLimitConfiguration, of name: String) -> PlannedLimit {
            let label = TableLabel(
                name: limit.name.value, keys: limit.keys, entries: server.limits.rateEntries,
                isShared: limit.isShared, isLocal: limit.onStoreError == .local)
            let buckets =
                tables[label] ?? known[label]
                ?? LimitBuckets(limit, entries: label.entries, client: store)
            tables[label] = buckets
            return PlannedLimit(limit, route: name, buckets)
        }
        for route in routes where !route.limits.isEmpty {
            let name = route.name.value
            let planned = route.limits.rates.compactMap { limits[$0.value] }.map { plan($0, of: name) }
            let counter = counters[name] ?? DividedCounter(.routeRequests)
            counters[name] = counter
            indices[name] = plans.count
            plans.append(RouteLimitPlan(planned, route.limits, counter: counter))
        }
        let ofLogins = logins.compactMap { limits[$0] }.map { plan($0, of: Self.loginRoute) }
        let counter = counters[Self.loginRoute] ?? DividedCounter(.routeRequests)
        counters[Self.loginRoute] = counter
        self.logins =
            ofLogins.isEmpty ? nil : RouteLimitPlan(ofLogins, RouteLimitsConfiguration(), counter: counter)
        self.plans = plans
        self.indices = indices
        self.tables = tables
        self.counters = counters
        needCaller = plans.contains { $0.countBeforeCaller < $0.limits.count }
        announce = plans.contains(where: \.announces)
    }

    /// What each limit has counted, by name.
    package var reports: [LimitReport] {
        tables.map { label, buckets in
            LimitReport(
                name: label.name, admitted: buckets.counts.admitted, limited: buckets.counts.limited,
                entries: (buckets.isLocal ? buckets.table.count : 0) + (buckets.shared?.count ?? 0),
                evictions: (buckets.isLocal ? buckets.table.evictions : 0) + (buckets.shared?.evictions ?? 0))
        }.sorted { $0.name < $1.name }
    }

    /// How often the store has not responded, or not in time; `nil` without a shared limit.
    package var storeFailures: Int? {
        tables.keys.contains(where: \.isShared) ? client?.failureCount : nil
    }

    /// The index of a route's plan; −1 without one.
    package func index(of route: Route) -> Int { route.mount >= 0 ? -1 : indices[route.name] ?? -1 }
}
