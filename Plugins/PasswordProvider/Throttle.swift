internal import MartletCore
private import MartletCrypto
internal import MartletProvider

/// Counts login attempts in the store that all instances share, and rejects those above the limits.
///
/// Keys contain no client input: names are stored as digests, so that clients cannot choose keys and the store does not
/// reveal who tried to log in.
///
/// An attacker cannot lock a user out permanently: a network from which the user has logged in before has a bucket of
/// its own for this user, which attempts from other networks do not fill.
struct Throttle: Sendable {
    /// An admitted attempt; its result must be recorded.
    struct Attempt: Sendable {
        /// Where it is counted: the user, or the user at one network.
        fileprivate let bucket: Bucket
        fileprivate var network: Network?
        /// Who makes it.
        fileprivate var owner: WorkOwner { network?.client.workOwner ?? .anonymous }
        /// The user at this network; `nil` without one.
        fileprivate var own: Bucket?
        /// When the user last logged in from there; `nil` if unknown or too long ago.
        fileprivate var lastLogin: UnixTime?
    }

    /// The counters of a user, or of a user at one network. All of a user have one hash tag.
    fileprivate struct Bucket: Sendable {
        /// The digest of the user.
        let user: String
        /// The same, or the digest of user and network.
        let name: String

        var isCommon: Bool { user == name }
    }

    /// The network that an attempt comes from.
    fileprivate struct Network: Sendable {
        let client: ClientNetwork
        /// The digest of the network.
        let address: String
    }

    /// How long a network stays known after a login.
    private static let networkLifetime = Duration.seconds(30 * 86_400)
    /// How old the record of a login may get before it is renewed, in seconds.
    private static let renewal: Int64 = 86_400
    /// The longest `Retry-After` while earlier attempts are still in progress.
    private static let pendingRetryAfter = Duration.seconds(2)

    let limits: ThrottleLimits
    let context: ProviderContext
    private let throttledAddresses = ThrottledAddresses()

    /// Counters, bans and known networks are in separate partitions, so that none of them can fill another. What failures
    /// cause is counted for the network that they come from, and known networks for the user.
    private func counters(for owner: WorkOwner) -> any SharedStoring {
        context.store.partition(.throttles, for: owner)
    }

    private func bans(for owner: WorkOwner) -> any SharedStoring { context.store.partition(.bans, for: owner) }

    /// The rejection of attempts from an address that the store reported as throttled a moment ago, without a query.
    ///
    /// A flood from one address then loads neither the store nor the queue of attempts, which others share.
    func rejection(of client: ClientNetwork) -> AuthenticationError? {
        throttledAddresses.retryAfter(client, at: context.clock.monotonicTime).map(Self.addressThrottled)
    }

    /// Whether the user has logged in from a network before; `false` while the store is unavailable.
    func knows(_ client: ClientNetwork, _ name: [UInt8]) async -> Bool {
        let pair = Bucket(user: Self.digest("user", name), name: Self.pair(name, client))
        let networks = context.store.partition(.loginLocations, for: WorkOwner(named: pair.user))
        return if case .found = await networks.value(for: key(.known, pair)) { true } else { false }
    }

    private static func pair(_ name: [UInt8], _ client: ClientNetwork) -> String {
        digest("pair", name + [0] + Array(client.description.utf8))
    }

    /// Admits an attempt, and counts it before any hash is computed.
    ///
    /// - Parameter name: the canonical name, whether or not the user exists.
    /// - Throws: `throttled`, or `unavailable` when the store is.
    func admit(_ name: [UInt8], from client: ClientNetwork?) async throws(AuthenticationError) -> Attempt {
        let user = Self.digest("user", name)
        let common = Bucket(user: user, name: user)
        guard let client else {
            try check(await count(common, nil, for: .anonymous).get())
            return Attempt(bucket: common)
        }
        let text = Array(client.description.utf8)
        let own = Bucket(user: user, name: Self.pair(name, client))
        let address = Self.digest("address", text)
        // Together, to wait for the store only once. The next attempt of a throttled address needs no query.
        async let reading = failures(of: address)
        let counted = await count(common, own, for: client.workOwner)
        let bucket = (try? counted.get())?.known == nil ? common : own
        do throws(AuthenticationError) {
            let failures = try await reading.get()
            guard !cacheIfThrottled(client, failures) else { throw Self.addressThrottled(failures.remaining) }
        } catch {
            // It concerns the address, and is no attempt of this user.
            if let count = try? counted.get(), count.ban.count == 0 { await withdraw(from: bucket) }
            throw error
        }
        let count = try counted.get()
        try check(count)
        return Attempt(
            bucket: bucket, network: Network(client: client, address: address), own: own,
            lastLogin: count.known.map(Self.lastLogin))
    }

    /// Counts a failed attempt.
    func recordFailure(_ attempt: Attempt) async {
        let counters = counters(for: attempt.owner)
        do throws(StoreError) {
            if let network = attempt.network {
                let failures = try await counters.increment(
                    failuresKey(ofAddress: network.address), lifetime: limits.address.window)
                cacheIfThrottled(network.client, failures)
            }
            let bucket = attempt.bucket
            let failures = try await counters.increment(key(.failures, bucket), lifetime: limits.window)
            guard failures.count >= limits.attempts else { return }
            _ = try await bans(for: attempt.owner).increment(key(.ban, bucket), lifetime: limits.ban)
            if !bucket.isCommon { try await record(bannedPair: bucket) }
            try await clear(bucket)
            context.logger.warning(
                "user throttled", ("user", bucket.name), ("network", attempt.network?.client.description ?? "local"))
        } catch {
            // It stays counted as an attempt, so the limit holds however long the outage lasts.
            context.logger.warning("counting a failed login failed", ("code", error.code.rawValue))
        }
    }

    /// Uncounts an attempt that could not be verified: an outage must not become a ban.
    func withdraw(_ attempt: Attempt) async { await withdraw(from: attempt.bucket) }

    private func withdraw(from bucket: Bucket) async {
        do throws(StoreError) { try await counters(for: .gateway).decrement(key(.attempts, bucket)) } catch {
            context.logger.warning("withdrawing a login attempt failed", ("code", error.code.rawValue))
        }
    }

    /// Resets the counters of this user at this network, and records the network as known.
    func recordSuccess(_ attempt: Attempt, at now: UnixTime) async {
        // Together, to wait for the store only once.
        async let recorded = result(try await record(networkOf: attempt, at: now))
        let cleared = await result(try await clear(attempt.bucket))
        for case .failure(let error) in [cleared, await recorded] {
            let code = (error.cause as? StoreError)?.code ?? error.code
            context.logger.warning("recording a login failed", ("code", code.rawValue))
        }
    }

    /// Records the network of a login as known, unless that was done in the last day.
    private func record(networkOf attempt: Attempt, at now: UnixTime) async throws(StoreError) {
        guard let own = attempt.own else { return }
        if let last = attempt.lastLogin, now.seconds &- last.seconds < Self.renewal { return }
        try await context.store.partition(.loginLocations, for: WorkOwner(named: own.user)).set(
            Array(String(now.seconds).utf8), for: key(.known, own), lifetime: Self.networkLifetime)
    }
}

// MARK: - Unlocking

extension Throttle {
    /// How many networks of a user an unlocking covers: those that were banned last.
    private static let maximumPairs = 64

    /// Ends the bans of a user, and forgets the attempts: at networks unknown for the user, and at known ones that were
    /// banned.
    /// - Parameter name: the canonical name.
    func unlock(_ name: [UInt8]) async throws(StoreError) {
        let user = Self.digest("user", name)
        let common = Bucket(user: user, name: user)
        for name in [user] + (try await bannedPairs(of: user)) {
            let bucket = Bucket(user: user, name: name)
            try await bans(for: .gateway).remove(key(.ban, bucket))
            try await clear(bucket)
        }
        try await bans(for: .gateway).remove(key(.pairs, common))
    }

    /// How the warning of a ban at unknown networks names a user.
    static func loggedName(of name: [UInt8]) -> String { digest("user", name) }

    /// The bans of a user, which an unlocking would end; `nil` without any.
    /// - Parameter name: the canonical name.
    func throttling(of name: [UInt8]) async throws(StoreError) -> UserThrottling? {
        let user = Self.digest("user", name)
        let bans = bans(for: .gateway)
        let ban = try await bans.counter(key(.ban, Bucket(user: user, name: user)))
        var pairs = 0
        for name in try await bannedPairs(of: user) {
            if try await bans.counter(key(.ban, Bucket(user: user, name: name))).count > 0 { pairs += 1 }
        }
        guard ban.count > 0 || pairs > 0 else { return nil }
        return UserThrottling(remaining: ban.count > 0 ? ban.remaining : nil, knownNetworks: pairs)
    }

    /// Records that a user is banned at a known network, because these keys cannot be listed.
    private func record(bannedPair pair: Bucket) async throws(StoreError) {
        let pairs = try await bannedPairs(of: pair.user).filter { $0 != pair.name } + [pair.name]
        let text = pairs.suffix(Self.maximumPairs).joined(separator: " ")
        let common = Bucket(user: pair.user, name: pair.user)
        // One for each user, at most 64 networks long.
        try await bans(for: WorkOwner(named: pair.user)).set(
            Array(text.utf8), for: key(.pairs, common), lifetime: limits.ban)
    }

    private func bannedPairs(of user: String) async throws(StoreError) -> [String] {
        switch await bans(for: .gateway).value(for: key(.pairs, Bucket(user: user, name: user))) {
        case .found(let bytes): String(decoding: bytes, as: UTF8.self).split(separator: " ").map(String.init)
        case .miss: []
        case .unavailable(let error): throw error
        }
    }
}

// MARK: - Counters

extension Throttle {
    private enum Counter: String { case attempts, failures, ban, pairs, known }

    /// Counts an attempt.
    /// - Parameter own: the bucket of the user at this network, which counts if the network is known.
    private func count(
        _ common: Bucket, _ own: Bucket?, for owner: WorkOwner
    ) async -> Result<AttemptCount, AuthenticationError> {
        func keys(of bucket: Bucket) -> CountedAttempt.Bucket {
            CountedAttempt.Bucket(attempts: key(.attempts, bucket), ban: key(.ban, bucket))
        }
        let attempt = CountedAttempt(
            known: own.map { key(.known, $0) }, own: own.map(keys), common: keys(of: common), lifetime: limits.window)
        return await result(try await context.store.count(attempt, for: owner))
    }

    private func check(_ count: AttemptCount) throws(AuthenticationError) {
        guard count.ban.count == 0 else { throw .throttled("password.throttled", retryAfter: count.ban.remaining) }
        guard count.attempts.count <= limits.attempts else {
            throw .throttled("password.throttled", retryAfter: min(count.attempts.remaining, Self.pendingRetryAfter))
        }
    }

    private func failures(of address: String) async -> Result<CounterReading, AuthenticationError> {
        await result(try await counters(for: .gateway).counter(failuresKey(ofAddress: address)))
    }

    /// Without the store no attempt is admitted, because none could be counted.
    private func result<Value>(
        _ value: @autoclosure () async throws(StoreError) -> Value
    ) async -> Result<Value, AuthenticationError> {
        do throws(StoreError) { return .success(try await value()) } catch {
            return .failure(.store(error, as: "password.store_unavailable"))
        }
    }

    /// Caches an address with too many failures as throttled.
    /// - Returns: whether it has too many.
    @discardableResult
    private func cacheIfThrottled(_ client: ClientNetwork, _ failures: CounterReading) -> Bool {
        guard failures.count >= limits.address.attempts else { return false }
        let now = context.clock.monotonicTime
        throttledAddresses.insert(client, until: now + failures.remaining, at: now)
        return true
    }

    private func clear(_ bucket: Bucket) async throws(StoreError) {
        try await counters(for: .gateway).remove([key(.attempts, bucket), key(.failures, bucket)])
    }

    private static func lastLogin(_ value: [UInt8]) -> UnixTime {
        UnixTime(seconds: Int64(String(decoding: value, as: UTF8.self)) ?? 0)
    }

    /// The keys of a user have one hash tag: the first characters of the digest suffice, since the name is all of it.
    private func key(_ counter: Counter, _ bucket: Bucket) -> String {
        context.storeKey("\(counter.rawValue):{\(bucket.user.prefix(16))}:\(bucket.name)")
    }

    private func failuresKey(ofAddress address: String) -> String { context.storeKey("failures:\(address)") }

    private static func addressThrottled(_ wait: Duration) -> AuthenticationError {
        .throttled("password.address_throttled", retryAfter: wait)
    }

    private static func digest(_ kind: String, _ bytes: [UInt8]) -> String {
        Base64URL.encode(SHA256.digest(Array(kind.utf8) + [0] + bytes))
    }
}
