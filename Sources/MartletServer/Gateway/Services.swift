internal import MartletAudit
internal import MartletAuthenticator
package import MartletCore
internal import MartletDecisions
internal import MartletFetch
package import MartletIO
internal import MartletJOSE
internal import MartletProvider
package import MartletProxy
internal import MartletTracing

/// The objects that exist once per process and survive reloads: threads, clients of other services, the log.
package struct Services: Sendable {
    package let clock: Clock
    let sink: LogSink
    package internal(set) var logger: Logger
    /// Which lines are written; a reload may change it, and so may operators.
    let levels: LogLevelControl
    /// The files that SIGUSR1 opens again.
    package let files = ReopenableFiles()
    let accessFiles: AccessLogFiles
    /// Runs the connections to Redis and PostgreSQL.
    package let loop: ServiceLoop
    package let resolver: Resolver
    let fetcher: HTTPFetcher
    let verifier: Verifier
    /// How many descriptors there are for what.
    package let descriptors: DescriptorBudget
    let connections: ConnectionLimit
    /// Has no destinations without `audit:`.
    let audit: AuditLog
    let memory = MemoryPressure()
    let ejections: EjectionWatch
    /// Runs the expensive half of TLS handshakes, so that a flood of them does not block the loops.
    let handshakes: ThreadPool
    /// Computes password hashes, at a lower priority than the loops.
    let hashing: ThreadPool

    /// Starts the threads.
    /// - Throws: `StartError` if the system does not provide them.
    package init(sink: LogSink, level: LogLevel, clock: Clock = .system) throws(StartError) {
        self.clock = clock
        self.sink = sink
        levels = LogLevelControl(level, clock: clock)
        logger = Logger(sink, threshold: levels.threshold)
        accessFiles = AccessLogFiles(logger: logger, instanceID: sink.instanceID, reopenable: files)
        ejections = EjectionWatch(logger)
        descriptors = DescriptorBudget(DescriptorPlan(limit: SystemInformation.raiseDescriptorLimit()))
        connections = ConnectionLimit(maximum: descriptors.plan.clients)
        audit = AuditLog(clock: clock, logger: logger.with(("component", "audit")))
        verifier = Verifier(threads: Services.coreCount, clock: clock)
        handshakes = ThreadPool(
            .handshakes, name: "martlet-tls", threads: Services.coreCount, niceness: 5, clock: clock)
        hashing = ThreadPool(
            .passwordHashes, name: "martlet-hash", threads: Services.coreCount, niceness: 10, clock: clock)
        do {
            loop = try ServiceLoop(name: "martlet-io")
            resolver = try Resolver()
            fetcher = try HTTPFetcher()
        } catch {
            throw StartError(code: "server.threads_unavailable", message: "\(error)", exit: .internalFault)
        }
    }

    /// Processors that this process may use: those that it may be scheduled on, or as many as its quota is worth.
    static let coreCount = max(min(SystemInformation.usableProcessors, CPUQuota.processors ?? .max), 1)

    /// Ends the threads.
    package func shutdown() {
        verifier.stop()
        handshakes.stop()
        hashing.stop()
        fetcher.shutdown()
        resolver.shutdown()
        loop.shutdown()
    }
}

/// Fetches an issuer's keys by libcurl.
struct KeyFetcher: KeyFetching {
    let fetcher: HTTPFetcher
    let route: OutboundRoute

    func fetch(_ url: String, timeout: Duration, maximumBytes: Int) async throws(FetchError) -> [UInt8] {
        let response: HTTPCallResponse
        do throws(HTTPCallError) {
            response = try await fetcher.get(
                url, for: .issuerKeys, timeout: timeout, maximumBytes: maximumBytes, via: route)
        } catch {
            throw FetchError(code: error.code, message: error.message)
        }
        guard response.status == 200 else {
            throw FetchError(code: "fetch.status", message: "response status \(response.status)")
        }
        return response.body
    }
}

/// The HTTP client of one purpose, by libcurl.
struct HTTPCaller: HTTPCalling {
    let fetcher: HTTPFetcher
    let purpose: FetchPurpose
    let route: OutboundRoute

    func send(_ call: HTTPCall) async throws(HTTPCallError) -> HTTPCallResponse {
        try await call.traced { () async throws(HTTPCallError) in
            try await fetcher.send(call, for: purpose, via: route)
        }
    }

    func reserve(within limit: Duration) async throws(HTTPCallError) -> any HTTPCalling {
        ReservedCaller(fetcher: fetcher, slot: try await fetcher.reserve(purpose, within: limit), route: route)
    }

    func hasCapacity(for owner: WorkOwner) -> Bool { fetcher.hasCapacity(purpose, for: owner) }
}

/// The same on a reserved slot.
private struct ReservedCaller: HTTPCalling {
    let fetcher: HTTPFetcher
    let slot: FetchSlot
    let route: OutboundRoute

    func send(_ call: HTTPCall) async throws(HTTPCallError) -> HTTPCallResponse {
        try await call.traced { () async throws(HTTPCallError) in try await fetcher.send(call, in: slot, via: route) }
    }
}
