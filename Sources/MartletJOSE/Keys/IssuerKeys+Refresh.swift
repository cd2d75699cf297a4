private import MartletCore
private import MartletCrypto

extension IssuerKeys {
    /// What a refresh came to.
    enum RefreshResult: Sendable {
        /// The issuer itself was asked just now and answered.
        case proven
        /// The store had what was needed, or another instance has asked just before.
        case shared
        /// Another instance has asked, and as far as can be seen the issuer has not answered.
        case unanswered
        case failed(FetchError)
    }

    /// How often the store is looked at while another instance fetches.
    private static let pollInterval = Duration.milliseconds(100)
    /// How long another instance's answer to an unknown key is waited for.
    private static let cooldownWait = Duration.seconds(1)
    /// How much longer than a fetch its lease lasts, should its holder be gone.
    private static let leaseMargin = Duration.seconds(2)
    /// The part of the fetch timeout for which the first keys wait for a store that cannot be asked yet.
    private static let storePart = 0.5
    /// How often such a store is looked at.
    private static let storeInterval = Duration.milliseconds(20)
    /// How far the clocks of instances may be apart.
    private static let skew = Duration.seconds(1)
    /// The shortest time that a fetch is given, however much the store has taken.
    private static let shortestFetch = Duration.milliseconds(100)
    /// The part of the ttl in which keys need no refresh of our own.
    private static let freshPart = 0.75

    /// Brings newer keys from the store, or else from the issuer.
    func perform(_ cause: IssuerKeysState.Cause) async -> RefreshResult {
        let deadline = clock.monotonicTime + policy.fetchTimeout
        guard let shared else { return await fetch(until: deadline) }
        if held == nil { await waitForStore(shared, until: clock.monotonicTime + policy.fetchTimeout * Self.storePart) }
        if await takeOver(from: shared, for: cause) { return .shared }
        let holder = (try? RandomBytes.make(16)) ?? Array(url.utf8)
        if case .unknownKey = cause, await shared.claimCooldown(holder, lifetime: policy.unknownKeyCooldown) == .theirs
        {
            // Another instance asks, or has asked, for a key that nobody knew: what it got is all there is to know.
            let end = min(deadline, clock.monotonicTime + Self.cooldownWait)
            while clock.monotonicTime < end, await pause() {
                if await takeOver(from: shared, for: cause) { return .shared }
            }
            return wasAnsweredLately ? .shared : .unanswered
        }
        let lifetime = policy.fetchTimeout + Self.leaseMargin
        var claim = await shared.claimLease(holder, lifetime: lifetime)
        while claim == .theirs {
            guard clock.monotonicTime < deadline, await pause() else {
                return .failed(
                    FetchError(code: "jwks.lease_timeout", message: "another instance fetches and brings nothing"))
            }
            if await takeOver(from: shared, for: cause) { return .shared }
            claim = await shared.claimLease(holder, lifetime: lifetime)
        }
        // Whoever had the lease until now may have written since the store was looked at.
        let isDone = claim == .ours ? await takeOver(from: shared, for: cause) : false
        let result = isDone ? .shared : await fetch(until: deadline)
        await shared.release(holder)
        return result
    }

    /// An instance that has just started has no connection to the store yet, and must not take it for an empty one.
    private func waitForStore(_ shared: SharedKeys, until end: MonotonicTime) async {
        while await !shared.isReachable(), clock.monotonicTime < end, await pause(Self.storeInterval) {}
    }

    /// Whether the keys in use were fetched since the cooldown that has not ended began.
    private var wasAnsweredLately: Bool {
        guard let held else { return false }
        return clock.monotonicTime < held.obtained + policy.unknownKeyCooldown + Self.skew
    }

    /// Waits before the store is looked at again; `false` when cancelled.
    private func pause(_ span: Duration = pollInterval) async -> Bool {
        do { try await sleep(span) } catch { return false }
        return true
    }

    /// Puts the store's keys into use where they are newer, and answers whether that is all that was wanted.
    private func takeOver(from shared: SharedKeys, for cause: IssuerKeysState.Cause) async -> Bool {
        if let record = await shared.read(), let keys = keys(from: record), keys.isNewer(than: held) { install(keys) }
        guard let held else { return false }
        return switch cause {
        case .due: clock.monotonicTime < held.obtained + policy.ttl * Self.freshPart
        case .unknownKey(let id): held.set.keys[id] != nil || held.set.skipped.contains { $0.id == id }
        }
    }

    /// Validates a record like a fetched document, its age included.
    private func keys(from record: KeyRecord) -> HeldKeys? {
        let age = clock.unixTime.seconds &- record.fetchedAt.seconds
        guard age >= 0, .seconds(age) < policy.maximumStale else { return nil }
        do {
            return try HeldKeys(
                document: record.document, fetchedAt: record.fetchedAt, source: .store, allowing: allowed, clock: clock)
        } catch {
            logger.warning("the store's record of an issuer's keys is no key set", ("reason", error.message))
            return nil
        }
    }

    /// Asks the issuer.
    private func fetch(until deadline: MonotonicTime) async -> RefreshResult {
        let now = clock.monotonicTime
        let fetchedAt = clock.unixTime
        countFetch()
        do throws(FetchError) {
            let document = try await fetcher.fetch(
                url, timeout: max(deadline.since(now), Self.shortestFetch), maximumBytes: KeySet.maximumBytes)
            install(try heldKeys(document, fetchedAt: fetchedAt))
            await shared?.write(KeyRecord(fetchedAt: fetchedAt, document: document), lifetime: policy.maximumStale)
            return .proven
        } catch {
            return .failed(error)
        }
    }

    private func heldKeys(_ document: [UInt8], fetchedAt: UnixTime) throws(FetchError) -> HeldKeys {
        do {
            return try HeldKeys(
                document: document, fetchedAt: fetchedAt, source: .issuer, allowing: allowed, clock: clock)
        } catch {
            throw FetchError(code: "jwks.bad_document", message: error.message)
        }
    }
}
