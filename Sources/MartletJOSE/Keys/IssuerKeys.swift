public import MartletCore
private import Synchronization

/// The keys of one issuer: fetched outside the request path, cached in memory and in the store, kept when the issuer fails.
///
/// ``lookup(_:)`` answers from memory. Whatever clients send, the issuer is asked once per ttl, once per cooldown for key ids
/// that nobody knows, and after failures by a back-off; all who wait share one request.
public final class IssuerKeys: Sendable {
    /// What a look-up by key id came to.
    public enum Lookup: Sendable {
        case key(VerificationKey)
        /// The issuer has such a key, but it may not be used.
        case unusable
        /// The issuer has no such key.
        case unknown
        /// A fetch may settle it; ask ``IssuerKeys/settle(_:)``.
        case undecided
        /// There are no keys at all.
        case unavailable
    }

    /// How long whatever the caller asked for may wait beyond the fetch itself.
    private static let grace = Duration.seconds(1)

    let url: String
    let allowed: Set<SignatureAlgorithm>
    let fetcher: any KeyFetching
    let shared: SharedKeys?
    let clock: Clock
    let logger: Logger
    let sleep: @Sendable (Duration) async throws -> Void
    private let onKeysRemoved: @Sendable ([KeyID]) -> Void
    private let state: Mutex<IssuerKeysState>
    let policy: IssuerKeysPolicy

    /// - Parameters:
    ///   - url: of the JWKS document.
    ///   - policy: how keys are fetched and kept.
    ///   - allowing: the algorithms whose keys are wanted.
    ///   - fetcher: gets the document.
    ///   - store: shares it between instances, if there is one.
    ///   - storeKeyPrefix: put before every key in the store.
    ///   - clock: tells the time.
    ///   - logger: carries the provider's name.
    ///   - onKeysRemoved: called when keys leave the set or change: what they vouched for must be judged anew.
    public convenience init(
        url: String, policy: IssuerKeysPolicy, allowing: Set<SignatureAlgorithm>, fetcher: any KeyFetching,
        store: (any KeyValueStoring)?, storeKeyPrefix: String, clock: Clock, logger: Logger,
        onKeysRemoved: @escaping @Sendable ([KeyID]) -> Void
    ) {
        self.init(
            url: url, policy: policy, allowing: allowing, fetcher: fetcher, store: store,
            storeKeyPrefix: storeKeyPrefix,
            clock: clock, logger: logger, sleep: { try await Task.sleep(for: $0) }, onKeysRemoved: onKeysRemoved)
    }

    /// - Parameter sleep: waits, until cancelled; a test's own clock in tests.
    package init(
        url: String, policy: IssuerKeysPolicy, allowing: Set<SignatureAlgorithm>, fetcher: any KeyFetching,
        store: (any KeyValueStoring)?, storeKeyPrefix: String, clock: Clock, logger: Logger,
        sleep: @escaping @Sendable (Duration) async throws -> Void, onKeysRemoved: @escaping @Sendable ([KeyID]) -> Void
    ) {
        self.url = url
        self.policy = policy
        allowed = allowing
        self.fetcher = fetcher
        shared = store.map { SharedKeys(store: $0, prefix: storeKeyPrefix, url: url, logger: logger) }
        self.clock = clock
        self.logger = logger
        self.sleep = sleep
        self.onKeysRemoved = onKeysRemoved
        state = Mutex(IssuerKeysState(policy: policy))
    }
}

// MARK: - Asking

extension IssuerKeys {
    /// The key of a name, from memory: never suspends, does no I/O.
    public func lookup(_ id: KeyID) -> Lookup {
        let now = clock.monotonicTime
        return state.withLock { $0.lookup(id, now: now) }
    }

    /// The key of a name, after a refresh if one is allowed and may bring it; never `undecided`.
    ///
    /// Waits no longer than the fetch timeout and a little.
    public func settle(_ id: KeyID) async -> Lookup {
        // Twice at most: keys that came from the store, or by a refresh begun earlier, need not have the newest one.
        for _ in 0..<2 {
            let answer = lookup(id)
            guard case .undecided = answer else { return answer }
            switch await refresh(hasKeys ? .unknownKey(id) : .due) {
            case .shared: continue
            case .proven: return verdict(id, isAnswered: true, remembering: true)
            case .unanswered, .failed: return verdict(id, isAnswered: false, remembering: false)
            }
        }
        return verdict(id, isAnswered: true, remembering: false)
    }

    /// The answer when nothing more can be learnt now.
    private func verdict(_ id: KeyID, isAnswered: Bool, remembering: Bool) -> Lookup {
        let now = clock.monotonicTime
        return state.withLock { state in
            let answer = state.verdict(id, isAnswered: isAnswered, now: now)
            if remembering, case .unknown = answer { state.remember(absent: id, now: now) }
            return answer
        }
    }

    private var hasKeys: Bool {
        let now = clock.monotonicTime
        return state.withLock { $0.usable(at: now) != nil }
    }

    /// How the keys stand now.
    public var status: IssuerKeysStatus {
        let now = clock.monotonicTime
        return state.withLock { state in
            let held = state.usable(at: now)
            let age = held.map { now.since($0.obtained) }
            return IssuerKeysStatus(
                keyIDs: held?.set.keys.keys.sorted { $0.text < $1.text } ?? [], source: held?.source ?? .none, age: age,
                isStale: age.map { $0 >= policy.ttl } ?? false, fetches: state.fetches, failures: state.failures,
                lastError: state.lastError,
                nextRefresh: state.background == nil ? nil : max(.zero, state.nextDue(now: now).since(now)))
        }
    }
}

// MARK: - Refreshing

extension IssuerKeys {
    /// Joins the refresh that is under way or begins one, and waits for its end.
    private func refresh(_ cause: IssuerKeysState.Cause) async -> RefreshResult {
        await withCheckedContinuation { continuation in
            let now = clock.monotonicTime
            let (begun, waits) = state.withLock { state in
                let begun = state.begin(cause, now: now)
                state.flight?.waiters.append(continuation)
                return (begun, state.flight != nil)
            }
            if let begun { launch(begun, cause) }
            if !waits { continuation.resume(returning: .failed(Self.stopped)) }
        }
    }

    private static let stopped = FetchError(code: "jwks.stopped", message: "shutting down")
    private static let late = FetchError(code: "jwks.timeout", message: "the refresh took too long")

    /// Runs a refresh in a task of its own, so that it survives whoever asked, beside one that ends it in time.
    private func launch(_ number: Int, _ cause: IssuerKeysState.Cause) {
        let work = Task { self.end(number, await self.perform(cause)) }
        let guardian = Task {
            do { try await self.sleep(self.policy.fetchTimeout + Self.grace) } catch { return }
            self.end(number, .failed(Self.late))
        }
        let isUnderWay = state.withLock { state in
            guard state.flight?.number == number else { return false }
            state.flight?.tasks = [work, guardian]
            return true
        }
        if !isUnderWay { guardian.cancel() }
    }

    private func end(_ number: Int, _ result: RefreshResult) {
        let now = clock.monotonicTime
        guard let ended = state.withLock({ $0.end(number, result, now: now) }) else { return }
        if case .failed(let error) = result {
            logger.warning(
                "an issuer's keys cannot be refreshed", ("url", url), ("code", "\(error.code)"),
                ("reason", error.message))
        }
        for task in ended.tasks { task.cancel() }
        for waiter in ended.waiters { waiter.resume(returning: result) }
    }

    var held: HeldKeys? { state.withLock { $0.held } }

    func countFetch() { state.withLock { $0.fetches &+= 1 } }

    /// Puts keys into use.
    func install(_ keys: HeldKeys) {
        let (isNews, removed) = state.withLock { state in (state.held?.document != keys.document, state.install(keys)) }
        if isNews {
            let names = keys.set.keys.keys.map(\.text).sorted().joined(separator: " ")
            logger.info("an issuer's keys are in use", ("url", url), ("source", keys.source.rawValue), ("kids", names))
            for key in keys.set.skipped {
                logger.warning(
                    "an issuer's key is left out", ("url", url), ("kid", key.id?.text ?? ""), ("reason", key.reason))
            }
        }
        report(removed: removed)
    }

    private func report(removed: [KeyID]) {
        guard !removed.isEmpty else { return }
        logger.info("an issuer's keys are gone", ("url", url), ("kids", removed.map(\.text).joined(separator: " ")))
        onKeysRemoved(removed)
    }
}

// MARK: - Background work

extension IssuerKeys {
    /// Gets the keys, well or not, and begins to keep them fresh.
    ///
    /// Across a reload the old provider and the new one share these keys: each of them starts and stops once, and the
    /// last to stop ends the work. What has ended begins again with the next start.
    public func start() async {
        let isUnderWay = state.withLock { state in
            state.enter()
            return state.background != nil
        }
        guard !isUnderWay else { return }
        _ = await refresh(.due)
        state.withLock { state in
            guard state.background == nil, !state.isStopped else { return }
            state.background = Task { await self.keepFresh() }
        }
    }

    /// Ends the background work, unless another who started it goes on; then whoever waits gets an answer.
    ///
    /// Keys in hand can still be looked up.
    public func stop() async {
        let (background, flight) = state.withLock { state -> (Task<Void, Never>?, IssuerKeysState.Flight?) in
            guard state.leave() else { return (nil, nil) }
            defer { state.background = nil }
            return (state.background, state.flight)
        }
        if let flight { end(flight.number, .failed(Self.stopped)) }
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
            report(removed: state.withLock { $0.lapse(now: now) })
            _ = await refresh(.due)
        }
    }
}
