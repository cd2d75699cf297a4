private import MartletCore
private import MartletCrypto

extension IssuerKeys {
    /// The result of a refresh.
    enum RefreshResult: Sendable {
        /// The issuer itself has just responded.
        case fetched
        /// The store had the keys, or another instance has fetched them recently.
        case shared
        /// Another instance has queried the issuer, apparently without a response.
        case noResponse
        case failed(FetchError)
    }

    /// The interval at which the store is polled while another instance fetches.
    private static let pollInterval = Duration.milliseconds(100)
    /// How long to wait for another instance's fetch of an unknown key.
    private static let cooldownWait = Duration.seconds(1)
    /// How much longer than the fetch timeout a lease lasts, in case its holder has died.
    private static let leaseMargin = Duration.seconds(2)
    /// The fraction of the fetch timeout for which the first refresh waits for a store that is not reachable yet.
    private static let storeFraction = 0.5
    /// The interval at which such a store is polled.
    private static let storeInterval = Duration.milliseconds(20)
    /// The assumed skew between the clocks of instances.
    private static let skew = Duration.seconds(1)
    /// The minimum timeout of a fetch, however long the store has taken.
    private static let shortestFetch = Duration.milliseconds(100)
    /// The fraction of the ttl during which keys from the store need no refresh.
    private static let freshFraction = 0.75

    /// Loads newer keys from the store, or else from the issuer.
    func perform(_ cause: IssuerKeysState.Cause) async -> RefreshResult {
        let deadline = clock.monotonicTime + policy.fetchTimeout
        guard let shared else { return await fetch(until: deadline) }
        if cached == nil {
            await waitForStore(shared, until: clock.monotonicTime + policy.fetchTimeout * Self.storeFraction)
        }
        if await load(from: shared, for: cause) { return .shared }
        let holder = (try? RandomBytes.make(16)) ?? Array(url.utf8)
        if case .unknownKey = cause, await shared.claimCooldown(holder, lifetime: policy.unknownKeyCooldown) == .theirs
        {
            // Another instance is fetching, or has fetched, because of an unknown key: use its result.
            let end = min(deadline, clock.monotonicTime + Self.cooldownWait)
            while clock.monotonicTime < end, await pause() {
                if await load(from: shared, for: cause) { return .shared }
            }
            return hasRecentKeys ? .shared : .noResponse
        }
        let lifetime = policy.fetchTimeout + Self.leaseMargin
        var claim = await shared.claimLease(holder, lifetime: lifetime)
        while claim == .theirs {
            guard clock.monotonicTime < deadline, await pause() else {
                return .failed(
                    FetchError(code: "jwks.lease_timeout", message: "another instance holds the lease"))
            }
            if await load(from: shared, for: cause) { return .shared }
            claim = await shared.claimLease(holder, lifetime: lifetime)
        }
        // The previous holder of the lease may have written since the store was read.
        let isDone = claim == .ours ? await load(from: shared, for: cause, latest: true) : false
        let result = isDone ? .shared : await fetch(until: deadline)
        await shared.release(holder)
        return result
    }

    /// An instance that has just started is not connected to the store yet, and must not treat it as empty.
    private func waitForStore(_ shared: SharedKeys, until end: MonotonicTime) async {
        while await !shared.isReachable(), clock.monotonicTime < end, await pause(Self.storeInterval) {}
    }

    /// Whether the keys in use were fetched within the current cooldown.
    private var hasRecentKeys: Bool {
        guard let cached else { return false }
        return clock.monotonicTime < cached.obtained + policy.unknownKeyCooldown + Self.skew
    }

    /// Waits before the store is polled again; `false` when cancelled.
    private func pause(_ span: Duration = pollInterval) async -> Bool {
        do { try await sleep(span) } catch { return false }
        return true
    }

    /// Installs the store's keys if they are newer, and returns whether that satisfies the cause of the refresh.
    private func load(
        from shared: SharedKeys, for cause: IssuerKeysState.Cause, latest: Bool = false
    ) async -> Bool {
        if let record = await shared.read(latest: latest), let keys = keys(from: record), keys.isNewer(than: cached) {
            install(keys)
        }
        guard let cached else { return false }
        return switch cause {
        case .due: clock.monotonicTime < cached.obtained + policy.ttl * Self.freshFraction
        case .requested(let instant): cached.obtained >= instant
        case .unknownKey(let id): cached.set.keys[id] != nil || cached.set.skipped.contains { $0.id == id }
        }
    }

    /// Validates a record like a fetched document, including its age.
    private func keys(from record: KeyRecord) -> CachedKeys? {
        let age = clock.unixTime.seconds &- record.fetchedAt.seconds
        guard age >= 0, .seconds(age) < policy.maximumStale else { return nil }
        do {
            return try CachedKeys(
                document: record.document, fetchedAt: record.fetchedAt, source: .store, allowing: allowed, clock: clock)
        } catch {
            logger.warning("stored issuer keys invalid", ("reason", error.message))
            return nil
        }
    }

    /// Fetches the keys from the issuer.
    private func fetch(until deadline: MonotonicTime) async -> RefreshResult {
        let now = clock.monotonicTime
        let fetchedAt = clock.unixTime
        countFetch()
        do throws(FetchError) {
            let document = try await fetcher.fetch(
                url, timeout: max(deadline.since(now), Self.shortestFetch), maximumBytes: KeySet.maximumBytes)
            install(try cachedKeys(document, fetchedAt: fetchedAt))
            await shared?.write(KeyRecord(fetchedAt: fetchedAt, document: document), lifetime: policy.maximumStale)
            return .fetched
        } catch {
            return .failed(error)
        }
    }

    private func cachedKeys(_ document: [UInt8], fetchedAt: UnixTime) throws(FetchError) -> CachedKeys {
        do {
            return try CachedKeys(
                document: document, fetchedAt: fetchedAt, source: .issuer, allowing: allowed, clock: clock)
        } catch {
            throw FetchError(code: "jwks.bad_document", message: error.message)
        }
    }
}
