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
        /// The digest of the user.
        fileprivate let user: String
        /// The key of the counters: the user, or the user at one network.
        fileprivate let bucket: String
        fileprivate let network: Network?
    }

    /// The network that an attempt comes from.
    fileprivate struct Network: Sendable {
        let client: ClientNetwork
        /// The digest of the network.
        let address: String
        /// The digest of user and network together.
        let pair: String
        /// When the user last logged in from there; `nil` if unknown or too long ago.
        let lastLogin: UnixTime?
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

    init(limits: ThrottleLimits, context: ProviderContext) {
        self.limits = limits
        self.context = context
    }

    /// Counters, bans and known networks are in separate partitions, so that none of them can evict the others.
    private var store: any SharedStoring { context.store.partition(.throttles) }
    private var bans: any SharedStoring { context.store.partition(.bans) }
    private var knownNetworks: any SharedStoring { context.store.partition(.loginLocations) }

    /// The rejection of attempts from an address that the store reported as throttled a moment ago, without a query.
    ///
    /// A flood from one address then loads neither the store nor the queue of attempts, which others share.
    func rejection(of client: ClientNetwork) -> AuthenticationError? {
        throttledAddresses.retryAfter(client, at: context.clock.monotonicTime).map(Self.addressThrottled)
    }

    /// Admits an attempt, and counts it before any hash is computed.
    ///
    /// - Parameter name: the canonical name, whether or not the user exists.
    /// - Throws: `throttled`, or `unavailable` when the store is.
    func admit(_ name: [UInt8], from client: ClientNetwork?) async throws(AuthenticationError) -> Attempt {
        let user = Self.digest("user", name)
        guard let client else { return try await countAttempt(Attempt(user: user, bucket: user, network: nil)) }

        let text = Array(client.description.utf8)
        let address = Self.digest("address", text)
        let failures = try await reading { () async throws(StoreError) in
            try await store.counter(key(.failures, address))
        }
        guard !cacheIfThrottled(client, failures) else { throw Self.addressThrottled(failures.remaining) }
        let pair = Self.digest("pair", name + [0] + text)
        let lastLogin = try await lastLogin(pair)
        let network = Network(client: client, address: address, pair: pair, lastLogin: lastLogin)
        return try await countAttempt(
            Attempt(user: user, bucket: lastLogin == nil ? user : pair, network: network))
    }

    /// Counts a failed attempt.
    func recordFailure(_ attempt: Attempt) async {
        do throws(StoreError) {
            if let network = attempt.network {
                let failures = try await store.increment(
                    key(.failures, network.address), lifetime: limits.addressWindow)
                cacheIfThrottled(network.client, failures)
            }
            let failures = try await store.increment(key(.failures, attempt.bucket), lifetime: limits.window)
            guard failures.count >= limits.attempts else { return }
            _ = try await bans.increment(key(.ban, attempt.bucket), lifetime: limits.ban)
            if attempt.bucket != attempt.user { try await record(bannedPair: attempt.bucket, of: attempt.user) }
            try await clear(attempt)
            context.logger.warning(
                "user throttled", ("user", attempt.bucket),
                ("network", attempt.network?.client.description ?? "local"))
        } catch {
            // It stays counted as an attempt, so the limit holds however long the outage lasts.
            context.logger.warning("counting a failed login failed", ("reason", error.code.rawValue))
        }
    }

    /// Uncounts an attempt that could not be verified: an outage must not become a ban.
    func withdraw(_ attempt: Attempt) async {
        do throws(StoreError) {
            try await store.decrement(key(.attempts, attempt.bucket))
        } catch {
            context.logger.warning("withdrawing a login attempt failed", ("reason", error.code.rawValue))
        }
    }

    /// Resets the counters of this user at this network, and records the network as known.
    func recordSuccess(_ attempt: Attempt, at now: UnixTime) async {
        do throws(StoreError) {
            try await clear(attempt)
            guard let network = attempt.network else { return }
            if let last = network.lastLogin, now.seconds &- last.seconds < Self.renewal { return }
            try await knownNetworks.set(
                Array(String(now.seconds).utf8), for: key(.known, network.pair), lifetime: Self.networkLifetime)
        } catch {
            context.logger.warning("recording a login failed", ("reason", error.code.rawValue))
        }
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
        for bucket in [user] + (try await bannedPairs(of: user)) {
            try await bans.remove(key(.ban, bucket))
            try await store.remove(key(.attempts, bucket))
            try await store.remove(key(.failures, bucket))
        }
        try await bans.remove(key(.pairs, user))
    }

    /// Records that a user is banned at a known network, because these keys cannot be listed.
    private func record(bannedPair pair: String, of user: String) async throws(StoreError) {
        let pairs = try await bannedPairs(of: user).filter { $0 != pair } + [pair]
        let text = pairs.suffix(Self.maximumPairs).joined(separator: " ")
        try await bans.set(Array(text.utf8), for: key(.pairs, user), lifetime: limits.ban)
    }

    private func bannedPairs(of user: String) async throws(StoreError) -> [String] {
        switch await bans.value(for: key(.pairs, user)) {
        case .found(let bytes): String(decoding: bytes, as: UTF8.self).split(separator: " ").map(String.init)
        case .miss: []
        case .unavailable(let error): throw error
        }
    }
}

// MARK: - Counters

extension Throttle {
    private enum Counter: String { case attempts, failures, ban, pairs, known }

    private func countAttempt(_ attempt: Attempt) async throws(AuthenticationError) -> Attempt {
        try await rejectBanned(attempt)
        let attempts = try await reading { () async throws(StoreError) in
            try await store.increment(key(.attempts, attempt.bucket), lifetime: limits.window)
        }
        guard attempts.count <= limits.attempts else {
            throw .throttled("password.throttled", retryAfter: min(attempts.remaining, Self.pendingRetryAfter))
        }
        // Another attempt's failure may have started the ban, and reset the count, since the first check.
        try await rejectBanned(attempt)
        return attempt
    }

    private func rejectBanned(_ attempt: Attempt) async throws(AuthenticationError) {
        let ban = try await reading { () async throws(StoreError) in
            try await bans.counter(key(.ban, attempt.bucket))
        }
        guard ban.count == 0 else { throw .throttled("password.throttled", retryAfter: ban.remaining) }
    }

    /// Caches an address with too many failures as throttled.
    /// - Returns: whether it has too many.
    @discardableResult
    private func cacheIfThrottled(_ client: ClientNetwork, _ failures: CounterReading) -> Bool {
        guard failures.count >= limits.addressAttempts else { return false }
        let now = context.clock.monotonicTime
        throttledAddresses.insert(client, until: now + failures.remaining, at: now)
        return true
    }

    private func clear(_ attempt: Attempt) async throws(StoreError) {
        try await store.remove(key(.attempts, attempt.bucket))
        try await store.remove(key(.failures, attempt.bucket))
    }

    private func lastLogin(_ pair: String) async throws(AuthenticationError) -> UnixTime? {
        switch await knownNetworks.value(for: key(.known, pair)) {
        case .found(let value): UnixTime(seconds: Int64(String(decoding: value, as: UTF8.self)) ?? 0)
        case .miss: nil
        case .unavailable(let error): throw .unavailable("password.store_unavailable", cause: error)
        }
    }

    /// Reads a counter; without the store no attempt is admitted, because none could be counted.
    private func reading(
        _ query: () async throws(StoreError) -> CounterReading
    ) async throws(AuthenticationError) -> CounterReading {
        do { return try await query() } catch { throw .unavailable("password.store_unavailable", cause: error) }
    }

    private func key(_ counter: Counter, _ digest: String) -> String {
        context.storeKey("\(counter.rawValue):\(digest)")
    }

    private static func addressThrottled(_ wait: Duration) -> AuthenticationError {
        .throttled("password.address_throttled", retryAfter: wait)
    }

    private static func digest(_ kind: String, _ bytes: [UInt8]) -> String {
        Base64URL.encode(SHA256.digest(Array(kind.utf8) + [0] + bytes))
    }
}
