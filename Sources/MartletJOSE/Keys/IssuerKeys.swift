public import MartletCore

/// The keys of one issuer: fetched off the request path, cached in memory and in the store, retained while the issuer
/// fails.
///
/// ``lookup(_:)`` reads from memory. Whatever clients send, the issuer is queried once per ttl, once per cooldown for
/// unknown key IDs, and with a backoff after failures; concurrent callers share one request.
public final class IssuerKeys: Sendable {
    /// The result of a lookup by key ID.
    public enum Lookup: Sendable {
        case key(VerificationKey)
        /// The issuer has such a key, but it must not be used.
        case unusable
        /// The issuer has no such key.
        case unknown
        /// A fetch may find the key; call ``IssuerKeys/resolve(_:)``.
        case undecided
        /// There are no keys at all.
        case unavailable
    }

    /// How long a caller may wait in addition to the fetch timeout.
    private static let grace = Duration.seconds(1)

    let url: String
    let allowed: Set<SignatureAlgorithm>
    let fetcher: any KeyFetching
    let shared: SharedKeys?
    let clock: Clock
    let logger: Logger
    let sleep: @Sendable (Duration) async throws -> Void
    private let outages: OutageReporter
    private let onKeysRemoved: @Sendable ([KeyID]) -> Void
    private let onRotation: @Sendable (IssuerKeyRotation) -> Void
    private let state: Lock<IssuerKeysState>
    let policy: IssuerKeysPolicy

    /// - Parameters:
    ///   - url: of the JWKS document.
    ///   - policy: how keys are fetched and cached.
    ///   - allowing: the algorithms whose keys are used.
    ///   - fetcher: fetches the document.
    ///   - store: shares the document between instances, if there is one.
    ///   - storeKeyPrefix: the prefix of every key in the store.
    ///   - clock: the source of time.
    ///   - logger: has the provider's name as a field.
    ///   - onKeysRemoved: called when keys are removed or changed: tokens verified with them need revalidation.
    public convenience init(
        url: String, policy: IssuerKeysPolicy, allowing: Set<SignatureAlgorithm>, fetcher: any KeyFetching,
        store: (any KeyValueStoring)?, storeKeyPrefix: String, clock: Clock, logger: Logger,
        onKeysRemoved: @escaping @Sendable ([KeyID]) -> Void
    ) {
        self.init(
            url: url, policy: policy, allowing: allowing, fetcher: fetcher, store: store,
            storeKeyPrefix: storeKeyPrefix,
            clock: clock, logger: logger, onKeysRemoved: onKeysRemoved, onRotation: { _ in })
    }

    /// - Parameters:
    ///   - sleep: waits until cancelled; tests pass their own clock.
    ///   - onRotation: called when the issuer has changed its keys, but not for its first ones, nor when keys are
    ///     removed because they could not be fetched for too long.
    package init(
        url: String, policy: IssuerKeysPolicy, allowing: Set<SignatureAlgorithm>, fetcher: any KeyFetching,
        store: (any KeyValueStoring)?, storeKeyPrefix: String, clock: Clock, logger: Logger,
        sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) },
        onKeysRemoved: @escaping @Sendable ([KeyID]) -> Void,
        onRotation: @escaping @Sendable (IssuerKeyRotation) -> Void
    ) {
        self.url = url
        self.policy = policy
        allowed = allowing
        self.fetcher = fetcher
        shared = store.map { SharedKeys(store: $0, prefix: storeKeyPrefix, url: url, clock: clock, logger: logger) }
        self.clock = clock
        self.logger = logger
        self.sleep = sleep
        outages = OutageReporter(
            "issuer keys refresh failed", end: "issuer keys refresh recovered", clock: clock,
            logger: logger.with(("url", url)))
        self.onKeysRemoved = onKeysRemoved
        self.onRotation = onRotation
        state = Lock(IssuerKeysState(policy: policy))
    }
}

// MARK: - Lookup

extension IssuerKeys {
    /// Looks up a key in memory: never suspends, does no I/O.
    public func lookup(_ id: KeyID) -> Lookup {
        let now = clock.monotonicTime
        return state.withLock { $0.lookup(id, now: now) }
    }

    /// Looks up a key, after a refresh if one is allowed and may find it; never returns `undecided`.
    ///
    /// Waits at most for the fetch timeout and one second.
    public func resolve(_ id: KeyID) async -> Lookup {
        // At most twice: keys from the store, or of a refresh that began earlier, may lack the newest key.
        for _ in 0..<2 {
            let found = lookup(id)
            guard case .undecided = found else { return found }
            switch await refresh(hasKeys ? .unknownKey(id) : .due) {
            case .shared: continue
            case .fetched: return finalLookup(id, hasResponse: true, cachesAbsence: true)
            case .noResponse, .failed: return finalLookup(id, hasResponse: false, cachesAbsence: false)
            }
        }
        return finalLookup(id, hasResponse: true, cachesAbsence: false)
    }

    /// The key of an issuer that has no other, for a token that names none (OpenID Connect Core §10.1).
    ///
    /// Reads from memory like ``lookup(_:)``; `unknown` if the issuer has several keys.
    public func onlyKey() -> Lookup {
        let now = clock.monotonicTime
        return state.withLock { $0.onlyKey(now: now) }
    }

    /// The same, after a refresh if one is allowed: such a token does not show that the issuer has changed its key.
    ///
    /// Refreshes are limited like those for unknown key IDs; never returns `undecided`.
    public func resolveOnlyKey() async -> Lookup {
        if !hasKeys {
            _ = await refresh(.due)
        } else if let id = KeyID("martlet:unnamed") {
            // Stands for the next key, so that the limits of unknown IDs apply to all tokens without one together.
            _ = await resolve(id)
        }
        let found = onlyKey()
        if case .undecided = found { return .unavailable }
        return found
    }

    /// The result when no further refresh is possible now.
    private func finalLookup(_ id: KeyID, hasResponse: Bool, cachesAbsence: Bool) -> Lookup {
        let now = clock.monotonicTime
        return state.withLock { state in
            let found = state.finalLookup(id, hasResponse: hasResponse, now: now)
            if cachesAbsence, case .unknown = found { state.cacheAbsence(of: id, now: now) }
            return found
        }
    }

    private var hasKeys: Bool {
        let now = clock.monotonicTime
        return state.withLock { $0.usable(at: now) != nil }
    }

    /// The current status of the keys.
    public var status: IssuerKeysStatus {
        let now = clock.monotonicTime
        return state.withLock { state in
            let cached = state.usable(at: now)
            let age = cached.map { now.since($0.obtained) }
            return IssuerKeysStatus(
                keyIDs: cached?.set.keys.keys.sorted { $0.text < $1.text } ?? [], source: cached?.source ?? .none,
                age: age,
                isStale: age.map { $0 >= policy.ttl } ?? false, fetches: state.fetches, failures: state.failures,
                lastError: state.lastError,
                nextRefresh: state.background == nil ? nil : max(.zero, state.nextDue(now: now).since(now)))
        }
    }
}

// MARK: - Refreshing

extension IssuerKeys {
    /// Joins the active refresh or begins one, and waits for its result.
    private func refresh(_ cause: IssuerKeysState.Cause) async -> RefreshResult {
        await withCheckedContinuation { continuation in
            let now = clock.monotonicTime
            let (begun, waits) = state.withLock { state in
                let begun = state.begin(cause, now: now)
                state.active?.waiters.append(continuation)
                return (begun, state.active != nil)
            }
            if let begun { launch(begun, cause) }
            if !waits { continuation.resume(returning: .failed(Self.stopped)) }
        }
    }

    /// Fetches the keys now, unless another instance has just done so.
    /// - Returns: why there are no newer ones; `nil` if there are.
    package func refreshNow() async -> FetchError? {
        switch await refresh(.requested(at: clock.monotonicTime)) {
        case .failed(let error): error
        case .fetched, .shared: nil
        case .noResponse: Self.timedOut
        }
    }

    private static let stopped = FetchError(code: "jwks.stopped", message: "shutting down")
    private static let timedOut = FetchError(code: "jwks.timeout", message: "the refresh timed out")

    /// Runs a refresh in a task of its own, so that it outlives its callers, and a second task as its timeout.
    private func launch(_ number: Int, _ cause: IssuerKeysState.Cause) {
        let work = Task { self.end(number, await self.perform(cause)) }
        let timeout = Task {
            do { try await self.sleep(self.policy.fetchTimeout + Self.grace) } catch { return }
            self.end(number, .failed(Self.timedOut))
        }
        let isActive = state.withLock { state in
            guard state.active?.number == number else { return false }
            state.active?.tasks = [work, timeout]
            return true
        }
        if !isActive { timeout.cancel() }
    }

    private func end(_ number: Int, _ result: RefreshResult) {
        let now = clock.monotonicTime
        guard let ended = state.withLock({ $0.end(number, result, now: now) }) else { return }
        switch result {
        case .failed(let error): outages.failed(error)
        case .fetched, .shared: outages.succeeded()
        case .noResponse: break
        }
        for task in ended.tasks { task.cancel() }
        for waiter in ended.waiters { waiter.resume(returning: result) }
    }

    /// How many wait for the refresh in progress.
    var waiters: Int { state.withLock { $0.active?.waiters.count ?? 0 } }

    var cached: CachedKeys? { state.withLock { $0.cached } }

    func countFetch() { state.withLock { $0.fetches &+= 1 } }

    /// Starts to use these keys.
    func install(_ keys: CachedKeys) {
        let (isChanged, rotation) = state.withLock { state in
            (state.cached?.document != keys.document, state.install(keys))
        }
        if isChanged {
            let names = keys.set.keys.keys.map(\.text).sorted().joined(separator: " ")
            logger.info("issuer keys loaded", ("url", url), ("source", keys.source.rawValue), ("kids", names))
            for key in keys.set.skipped {
                let line = logger.with(("url", url), ("kid", key.id?.text ?? ""), ("reason", key.reason))
                if key.isOfAnotherUse { line.info("issuer key skipped") } else { line.warning("issuer key skipped") }
            }
        }
        guard let rotation, !rotation.isEmpty else { return }
        report(removed: rotation.removed)
        onRotation(rotation)
    }

    private func report(removed: [KeyID]) {
        guard !removed.isEmpty else { return }
        logger.info("issuer keys removed", ("url", url), ("kids", removed.map(\.text).joined(separator: " ")))
        onKeysRemoved(removed)
    }
}

// MARK: - Background refresh

extension IssuerKeys {
    /// Attempts a first fetch and starts the background refresh.
    ///
    /// Across a reload the old provider and the new one share these keys: each starts and stops once, and the last to
    /// stop ends the background refresh. It can be started again.
    public func start() async {
        let isRunning = state.withLock { state in
            state.addUser()
            return state.background != nil
        }
        guard !isRunning else { return }
        _ = await refresh(.due)
        let background = Task { await self.keepFresh() }
        let isNeeded = state.withLock { state in
            guard state.background == nil, !state.isStopped else { return false }
            state.background = background
            return true
        }
        if !isNeeded { background.cancel() }
    }

    /// Ends the background refresh unless it has other users, and fails the callers that wait for it.
    ///
    /// Cached keys can still be looked up.
    public func stop() async {
        let (background, active) = state.withLock { state -> (Task<Void, Never>?, IssuerKeysState.ActiveRefresh?) in
            guard state.removeUser() else { return (nil, nil) }
            defer { state.background = nil }
            return (state.background, state.active)
        }
        if let active { end(active.number, .failed(Self.stopped)) }
        background?.cancel()
        await background?.value
    }

    private func keepFresh() async {
        while !Task.isCancelled {
            let now = clock.monotonicTime
            let due = state.withLock { $0.nextDue(now: now) }
            if now < due {
                do { try await sleep(due.since(now)) } catch { return }
                continue
            }
            report(removed: state.withLock { $0.expireKeys(now: now) })
            _ = await refresh(.due)
        }
    }
}
