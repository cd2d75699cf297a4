package import MartletConfig
internal import MartletCore
package import MartletIO
package import MartletTLS
package import MartletTraffic

/// An upstream, as the loops use it.
@safe package struct Upstream: Sendable {
    package let name: String
    /// The endpoints as they stand in the file.
    package let members: [EndpointConfiguration]
    /// Timeouts in nanoseconds.
    package let connectTimeout: Int64
    package let responseTimeout: Int64
    package let idleTimeout: Int64
    package let host: UpstreamConfiguration.HostPolicy
    package let balance: UpstreamConfiguration.Balance
    package let policies: UpstreamPolicies
    package let transport: UpstreamTransport
    /// For its https endpoints.
    package let tls: TLSClientContext?
    /// Whether its connections support upgrades; HTTP/2 connections carry other requests, too.
    package let carriesUpgrades: Bool
    package let traffic: TrafficPolicy
    package let breaker: Breaker?
    /// What is counted over all loops; `nil` if nothing is. As long-lived as the process.
    package let counters: UpstreamCounters?
    /// Whether requests are counted. A flag, because nothing retains it.
    package let isCounted: Bool
    /// That of the counters, where retries are bounded by it.
    package let retryBudget: Unmanaged<RetryBudget>?

    /// The addresses of its endpoints.
    package var endpoints: [EndpointAddress] { members.map(\.address.value) }

    package init(
        _ configuration: UpstreamConfiguration, tls: TLSClientContext? = nil, counters: UpstreamCounters? = nil
    ) {
        self.counters = counters
        isCounted = counters != nil
        transport = configuration.transport
        self.tls = tls
        name = configuration.name.value
        members = configuration.members
        connectTimeout = configuration.timeouts.connect.boundedNanoseconds
        let response = configuration.timeouts.responseHead.boundedNanoseconds
        responseTimeout = min(response, configuration.policies.retries?.perTryTimeout?.boundedNanoseconds ?? response)
        idleTimeout = configuration.timeouts.idle.boundedNanoseconds
        host = configuration.host
        balance = configuration.balance
        policies = configuration.policies
        carriesUpgrades = configuration.transport.version == .http1
        traffic = TrafficPolicy(configuration)
        let budget = traffic.retries == nil ? nil : counters?.budget
        unsafe retryBudget = budget.map { unsafe .passUnretained($0) }
        breaker = configuration.policies.breaker.flatMap { policy in counters.map { Breaker(policy, $0) } }
    }
}

/// What an upstream's requests are divided by, and what follows their failures.
package struct TrafficPolicy: Sendable {
    package let balance: BalancePolicy
    package let ejection: EjectionPolicy
    /// Percent; 0 is never.
    package let panicThreshold: Int
    /// Nanoseconds; 0 is none.
    package let slowStart: Int64
    /// How long an endpoint that left the file finishes its requests, in nanoseconds.
    package let drain: Int64
    package let retries: RetryPolicy?

    package init(_ configuration: UpstreamConfiguration) {
        let policies = configuration.policies
        balance =
            switch configuration.balance {
            case .leastRequests: .leastRequests
            case .roundRobin: .roundRobin
            case .hash, .hashSubject, .hashAddress: .hash
            }
        var ejection = EjectionPolicy()
        if let outlier = policies.outlier {
            ejection.failures = outlier.consecutiveFailures
            ejection.shortest = outlier.baseEjection.boundedNanoseconds
            ejection.longest = outlier.maximumEjection.boundedNanoseconds
            ejection.maximumEjected = outlier.maximumEjected.percent
            ejection.rate = ErrorRatePolicy(
                percent: outlier.errorRate.percent, minimumRequests: outlier.minimumRequests,
                window: outlier.window.boundedNanoseconds)
        }
        self.ejection = ejection
        let isWatched = policies.outlier != nil || policies.healthCheck != nil
        panicThreshold = policies.panicThreshold?.percent ?? (isWatched ? 50 : 0)
        slowStart = policies.slowStart?.boundedNanoseconds ?? 0
        drain = policies.drain.boundedNanoseconds
        retries = policies.retries.map { RetryPolicy($0) }
    }
}

extension UpstreamCounters {
    /// The counters of an upstream; `nil` if it needs none.
    ///
    /// A reload keeps them. They are never released: connections and requests refer to them unretained.
    /// - Parameter previous: the upstreams of the configuration that is replaced.
    package static func of(_ upstream: UpstreamConfiguration, previous: [Upstream]) -> UpstreamCounters? {
        guard upstream.policies.breaker != nil || upstream.policies.retries != nil else { return nil }
        if let known = previous.first(where: { $0.name == upstream.name.value })?.counters { return known }
        return unsafe Unmanaged.passRetained(UpstreamCounters()).takeUnretainedValue()
    }
}

/// The current addresses of a host name in an upstream, which has its own rules for them.
package struct ResolvedName: Sendable, Equatable {
    /// The name of the upstream.
    package let upstream: String
    package let endpoint: EndpointAddress
    /// In a stable order; empty for a name without an address.
    package let addresses: [SocketEndpoint]

    package init(upstream: String, endpoint: EndpointAddress, addresses: [SocketEndpoint]) {
        self.upstream = upstream
        self.endpoint = endpoint
        self.addresses = addresses
    }
}
