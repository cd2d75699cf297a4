internal import MartletConfig
internal import MartletCore
internal import MartletDecisions
internal import MartletIO
internal import MartletUpstreams

/// The addresses of upstream host names: looked up again as often as they change, off the event loops.
final class NameResolution: Sendable {
    /// A host name as an endpoint uses it.
    private struct Use: Hashable {
        let upstream: String
        let endpoint: EndpointAddress
        let request: NameRequest
        let port: UInt16
        let usesAllAddresses: Bool
    }

    private struct State {
        var book = NameBook()
        /// Those of the current configuration.
        var uses: [Use] = []
        var outages: [NameRequest: OutageReporter] = [:]
        /// Names with too many addresses, which were logged.
        var excessive: Set<NameRequest> = []
        var observer: Observer?
        /// Whether there were changes since the observer got all names, and when that was.
        var hasUnreported = false
        var reportedAt: MonotonicTime?

        var resolved: [ResolvedName] { uses.map { resolve($0) } }

        func resolve(_ use: Use) -> ResolvedName {
            let addresses = book.addresses(of: use.request).map { $0.withPort(use.port) }
            return ResolvedName(
                upstream: use.upstream, endpoint: use.endpoint,
                addresses: use.usesAllAddresses ? addresses : Array(addresses.prefix(1)))
        }
    }

    /// What gets new addresses; it must not block, nor call this object.
    struct Observer: Sendable {
        /// Gets what has changed, immediately.
        let changed: @Sendable ([ResolvedName]) -> Void
        /// Gets all names after changes, at most once a second: names may change all the time.
        let all: @Sendable ([ResolvedName]) -> Void
    }

    /// How long a name that a reload has added may be due before it is noticed.
    private static let longestPause = Duration.seconds(1)
    private static let shortestPause = Duration.milliseconds(10)

    private let clock: Clock
    private let logger: Logger
    private let resolver: NameResolver
    private let state = Lock(State(), .names)

    init(_ resolver: NameResolver, clock: Clock, logger: Logger) {
        (self.resolver, self.clock, self.logger) = (resolver, clock, logger)
    }

    func attach(_ observer: Observer) { state.withLock { $0.observer = observer } }

    /// Looks up the names of a configuration that are not known yet, and waits until each lookup has ended.
    func prepare(_ upstreams: [UpstreamConfiguration]) async {
        let requests = Set(Self.uses(upstreams).map(\.request))
        let now = clock.monotonicTime
        let unknown = state.withLock { state in
            state.book.add(requests, at: now).filter { state.book.begin($0) }
        }
        await withTaskGroup(of: Void.self) { group in
            for request in unknown {
                group.addTask { self.finish(request, await self.resolver.resolve(request.question)) }
            }
        }
    }

    /// Adopts a configuration, whose names are prepared, and drops all other names.
    /// - Parameter publish: gets the addresses of all names before any that are newer.
    func follow(_ upstreams: [UpstreamConfiguration], _ publish: ([ResolvedName]) -> Void = { _ in }) {
        let uses = Self.uses(upstreams)
        let requests = Set(uses.map(\.request))
        state.withLock { state in
            state.uses = uses
            state.book.retain(requests)
            state.outages = state.outages.filter { requests.contains($0.key) }
            state.excessive.formIntersection(requests)
            publish(state.resolved)
        }
    }

    /// Gives the addresses of all names, before any that are newer.
    func withAll(_ body: ([ResolvedName]) -> Void) { state.withLock { body($0.resolved) } }

    /// Looks up every name whenever it is due, until the task is cancelled.
    func run() async {
        while !Task.isCancelled {
            let now = clock.monotonicTime
            let (due, next) = state.withLock { ($0.book.beginDue(at: now), $0.book.nextDue) }
            for request in due {
                resolver.resolve(request.question) { [weak self] in self?.finish(request, $0) }
            }
            reportAll(at: now)
            let pause = next.map { $0.since(now) } ?? Self.longestPause
            do {
                try await Task.sleep(for: min(max(pause, Self.shortestPause), Self.longestPause))
            } catch {
                return
            }
        }
    }

    private func reportAll(at now: MonotonicTime) {
        state.withLock { state in
            guard state.hasUnreported, state.reportedAt.map({ now.since($0) >= Self.longestPause }) ?? true else {
                return
            }
            (state.hasUnreported, state.reportedAt) = (false, now)
            state.observer?.all(state.resolved)
        }
    }

    func stop() { resolver.shutdown() }

    private static func uses(_ upstreams: [UpstreamConfiguration]) -> [Use] {
        var seen: Set<Use> = []
        var uses: [Use] = []
        for upstream in upstreams {
            let rules = upstream.policies.resolution
            for endpoint in upstream.endpoints.map(\.value) {
                guard let (host, port) = endpoint.hostAndPort, SocketEndpoint(literal: host, port: port) == nil else {
                    continue
                }
                let question = NameQuestion(host: host, family: NameQuestion.Family(rules.family))
                let use = Use(
                    upstream: upstream.name.value, endpoint: endpoint,
                    request: NameRequest(question, refresh: rules.refresh), port: port,
                    usesAllAddresses: rules.usesAllAddresses)
                if seen.insert(use).inserted { uses.append(use) }
            }
        }
        return uses
    }

    /// Called with the result of a lookup, on any thread.
    private func finish(_ request: NameRequest, _ reply: NameReply) {
        let (now, random) = (clock.monotonicTime, Double.random(in: 0...1))
        // New addresses are published under the lock, so that no older ones follow them.
        let result = state.withLock { state -> (NameBook.Change, OutageReporter, isNewExcess: Bool)? in
            guard let change = state.book.finish(request, reply, at: now, random: random) else { return nil }
            if change.hasChanged {
                let changed = state.uses.filter { $0.request == request }.map { state.resolve($0) }
                if !changed.isEmpty { state.observer?.changed(changed) }
                state.hasUnreported = !changed.isEmpty || state.hasUnreported
            }
            let outage = state.outages[request] ?? outage(of: request)
            state.outages[request] = outage
            if change.excess == nil { state.excessive.remove(request) }
            return (change, outage, change.excess != nil && state.excessive.insert(request).inserted)
        }
        guard let (change, outage, isNewExcess) = result else { return }
        if let failure = change.failure {
            outage.failed("resolver.name_unknown", "'\(request.question.host)': \(failure)")
        } else {
            outage.succeeded()
        }
        if change.hasLapsed {
            logger.warning("upstream host name has no address any more", ("host", request.question.host))
        }
        if let count = change.excess, isNewExcess {
            logger.warning(
                "upstream host name has too many addresses", ("host", request.question.host),
                ("addresses", String(count)), ("used", String(NameBook.maximumAddresses)))
        }
    }

    private func outage(of request: NameRequest) -> OutageReporter {
        OutageReporter(
            "upstream host name could not be resolved", end: "upstream host name resolved again", clock: clock,
            logger: logger.with(("host", request.question.host)))
    }
}

extension NameQuestion.Family {
    fileprivate init(_ family: ResolutionConfiguration.Family) {
        self =
            switch family {
            case .any: .any
            case .ipv4: .ipv4
            case .ipv6: .ipv6
            }
    }
}
