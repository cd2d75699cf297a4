import Testing

@testable import MartletConfig

@Suite struct UpstreamPolicyTests {
    @Test func `every key of an upstream's policies is decoded`() throws {
        let upstream = try upstream(
            """
                endpoints:
                  - http://a
                  - { url: "http://b:81", weight: 3 }
                  - { url: http://c, backup: true, weight: 0 }
                dns: { refresh: 10s, family: ipv6, all_addresses: false }
                balance: hash:subject
                health_check: { path: "/healthz?full=1", interval: 2s, timeout: 500ms, healthy: 1, unhealthy: 4,
                  expect: [200-299, 304], host: "api.internal:80", port: 9001, jitter: 0% }
                outlier: { consecutive_failures: 7, error_rate: 25%, minimum_requests: 10, window: 5s,
                  base_ejection: 2s, max_ejection: 8s, max_ejected: 30% }
                slow_start: 30s
                breaker: { max_connections: 10, max_requests: 20, max_pending: 0, queue_timeout: 200ms }
                retries: { attempts: 1, retry_on: [connect, 503], per_try_timeout: 5s, budget: 10%, min_per_second: 0,
                  backoff: 0s }
                panic_threshold: 0%
                drain: 0s
            """)
        #expect(
            upstream.members.map(\.weight) == [1, 3, 0] && upstream.members.map(\.isBackup) == [false, false, true])
        #expect(upstream.endpoints[1].value == .http(host: "b", port: 81))
        #expect(upstream.balance == .hashSubject)
        var expected = UpstreamPolicies()
        expected.resolution.refresh = .seconds(10)
        expected.resolution.family = .ipv6
        expected.resolution.usesAllAddresses = false
        var check = HealthCheckConfiguration()
        (check.path, check.interval, check.timeout) = ("/healthz?full=1", .seconds(2), .milliseconds(500))
        (check.healthy, check.unhealthy, check.expected) = (1, 4, [200...299, 304...304])
        (check.host, check.port, check.jitter) = ("api.internal:80", 9001, Percentage(0))
        expected.healthCheck = check
        var outlier = OutlierConfiguration()
        (outlier.consecutiveFailures, outlier.errorRate, outlier.minimumRequests) = (7, Percentage(25), 10)
        (outlier.window, outlier.baseEjection, outlier.maximumEjection) = (.seconds(5), .seconds(2), .seconds(8))
        outlier.maximumEjected = Percentage(30)
        expected.outlier = outlier
        expected.slowStart = .seconds(30)
        var breaker = BreakerConfiguration()
        (breaker.maximumConnections, breaker.maximumRequests, breaker.maximumPending) = (10, 20, 0)
        breaker.queueTimeout = .milliseconds(200)
        expected.breaker = breaker
        var retries = RetryConfiguration()
        (retries.attempts, retries.conditions, retries.perTryTimeout) = (
            1, [.connect, .serviceUnavailable], .seconds(5)
        )
        (retries.budget, retries.minimumPerSecond, retries.backoff) = (Percentage(10), 0, .zero)
        expected.retries = retries
        expected.panicThreshold = Percentage(0)
        expected.drain = .zero
        #expect(upstream.policies == expected)
    }

    @Test func `empty blocks have the documented defaults, and absent ones are none`() throws {
        #expect(try upstream("    endpoints: [http://a]").policies == UpstreamPolicies())
        let upstream = try upstream(
            """
                endpoints: [http://a]
                health_check: {}
                outlier: {}
                breaker: {}
                retries: {}
            """)
        let policies = upstream.policies
        #expect(policies.healthCheck == HealthCheckConfiguration() && policies.outlier == OutlierConfiguration())
        #expect(policies.breaker == BreakerConfiguration() && policies.retries == RetryConfiguration())
        #expect(policies.retries?.conditions == Set(RetryConfiguration.Condition.allCases))
        #expect(policies.resolution.refresh == .seconds(30) && policies.drain == .seconds(30))
    }

    @Test func `the balance has two spellings for a header, and words for subject and address`() throws {
        let balances: [(String, UpstreamConfiguration.Balance)] = [
            ("hash:X-Key", .hash(header: "x-key")), ("{ hash: header, name: Subject }", .hash(header: "subject")),
            ("hash:address", .hashAddress), ("hash:subject", .hashSubject), ("round_robin", .roundRobin),
        ]
        for (text, balance) in balances {
            #expect(try upstream("    endpoints: [http://a]\n    balance: \(text)").balance == balance)
        }
    }

    @Test func `a short interval shortens the default timeout of a probe`() throws {
        let upstream = try upstream("    endpoints: [http://a]\n    health_check: { interval: 300ms }")
        #expect(upstream.policies.healthCheck?.timeout == .milliseconds(300))
    }

    @Test func `gRPC probes need HTTP/2`() throws {
        for url in ["h2c://a", "https://a]\n    protocol: h2 #"] {
            let upstream = try upstream("    endpoints: [\(url)]\n    health_check: { grpc: true }")
            #expect(upstream.policies.healthCheck?.isGRPC == true)
        }
    }

    private func upstream(_ block: String) throws -> UpstreamConfiguration {
        let (configuration, diagnostics) = load(
            """
            version: 1
            upstreams:
              api:
            \(block)
            routes:
              - { name: all, auth: none, upstream: api }
            """)
        return try #require(configuration?.upstreams.first, "\(diagnostics)")
    }
}
