internal import MartletCore
private import MartletCrypto
internal import MartletProvider

/// Counts attempts in the store that all instances share, and refuses those that are too many.
///
/// Nothing that a client chose stands in a key: names are there by their digests, so that the store cannot be steered and
/// does not tell who tried to log in.
///
/// Nobody can be locked out for good: a network from which a user has logged in before has a bucket of its own for this
/// user, which attempts from elsewhere do not fill.
struct Throttle: Sendable {
    /// An attempt that was let through and must be counted as one thing or the other.
    struct Attempt: Sendable {
        /// What the attempts are counted under: the user, or the user at one network.
        fileprivate let bucket: String
        fileprivate let network: Network?
    }

    /// Where an attempt comes from.
    fileprivate struct Network: Sendable {
        let description: String
        /// The digest of the network.
        let address: String
        /// The digest of user and network together.
        let pair: String
        /// When the user last logged in from there, as far as is remembered.
        let lastLogin: UnixTime?
    }

    /// How long a network is remembered after a login.
    private static let memory = Duration.seconds(30 * 86_400)
    /// How old the note of a login may get before it is written anew, in seconds.
    private static let renewal: Int64 = 86_400
    /// What a caller is told who comes while earlier attempts are still being judged.
    private static let shortWait = Duration.seconds(2)

    let limits: ThrottleLimits
    let context: ProviderContext

    /// Counts are kept apart from bans, and both from what is kept for long: where room is short, neither takes the other's.
    private var store: any SharedStoring { context.store.partition(.throttles) }
    private var bans: any SharedStoring { context.store.partition(.bans) }
    private var places: any SharedStoring { context.store.partition(.places) }

    /// Lets an attempt through, and counts it before anything is computed.
    ///
    /// - Parameter name: the canonical name, whether or not there is such a user.
    /// - Throws: `throttled`, or `unavailable` when the store cannot tell.
    func admit(_ name: [UInt8], from client: ClientNetwork?) async throws(AuthenticationError) -> Attempt {
        let user = Self.digest("user", name)
        guard let client else { return try await enter(Attempt(bucket: user, network: nil)) }

        let text = Array(client.description.utf8)
        let address = Self.digest("address", text)
        let failures = try await answer { () async throws(StoreError) in
            try await store.counter(key(.failures, address))
        }
        guard failures.count < limits.addressAttempts else {
            throw .throttled("password.address_throttled", retryAfter: failures.remaining)
        }
        let pair = Self.digest("pair", name + [0] + text)
        let lastLogin = try await lastLogin(pair)
        let network = Network(description: client.description, address: address, pair: pair, lastLogin: lastLogin)
        return try await enter(Attempt(bucket: lastLogin == nil ? user : pair, network: network))
    }

    /// Counts an attempt that did not succeed.
    func failed(_ attempt: Attempt) async {
        do throws(StoreError) {
            if let network = attempt.network {
                _ = try await store.increment(key(.failures, network.address), lifetime: limits.addressWindow)
            }
            let failures = try await store.increment(key(.failures, attempt.bucket), lifetime: limits.window)
            guard failures.count >= limits.attempts else { return }
            _ = try await bans.increment(key(.ban, attempt.bucket), lifetime: limits.ban)
            try await clear(attempt)
            context.logger.warning(
                "a user's logins are throttled", ("user", attempt.bucket),
                ("network", attempt.network?.description ?? "local"))
        } catch {
            // It stays counted as an attempt, so no more than the limit go through however long this lasts.
            context.logger.warning("a failed login could not be counted", ("reason", error.code.rawValue))
        }
    }

    /// Takes back an attempt that nobody could judge: an outage must not become a ban.
    func withdrew(_ attempt: Attempt) async {
        do throws(StoreError) {
            try await store.decrement(key(.attempts, attempt.bucket))
        } catch {
            context.logger.warning("an attempt could not be taken back", ("reason", error.code.rawValue))
        }
    }

    /// Begins anew for this user at this place, and remembers the place.
    func succeeded(_ attempt: Attempt, at now: UnixTime) async {
        do throws(StoreError) {
            try await clear(attempt)
            guard let network = attempt.network else { return }
            if let last = network.lastLogin, now.seconds &- last.seconds < Self.renewal { return }
            try await places.set(
                Array(String(now.seconds).utf8), for: key(.known, network.pair), lifetime: Self.memory)
        } catch {
            context.logger.warning("a login could not be noted", ("reason", error.code.rawValue))
        }
    }
}

// MARK: - The counters

extension Throttle {
    private enum Counter: String { case attempts, failures, ban, known }

    private func enter(_ attempt: Attempt) async throws(AuthenticationError) -> Attempt {
        try await refuseBanned(attempt)
        let attempts = try await answer { () async throws(StoreError) in
            try await store.increment(key(.attempts, attempt.bucket), lifetime: limits.window)
        }
        guard attempts.count <= limits.attempts else {
            throw .throttled("password.throttled", retryAfter: min(attempts.remaining, Self.shortWait))
        }
        // Another attempt's failure may have begun the ban, and the count anew, since the first look.
        try await refuseBanned(attempt)
        return attempt
    }

    private func refuseBanned(_ attempt: Attempt) async throws(AuthenticationError) {
        let ban = try await answer { () async throws(StoreError) in
            try await bans.counter(key(.ban, attempt.bucket))
        }
        guard ban.count == 0 else { throw .throttled("password.throttled", retryAfter: ban.remaining) }
    }

    private func clear(_ attempt: Attempt) async throws(StoreError) {
        try await store.remove(key(.attempts, attempt.bucket))
        try await store.remove(key(.failures, attempt.bucket))
    }

    private func lastLogin(_ pair: String) async throws(AuthenticationError) -> UnixTime? {
        switch await places.value(for: key(.known, pair)) {
        case .answer(let value): UnixTime(seconds: Int64(String(decoding: value, as: UTF8.self)) ?? 0)
        case .miss: nil
        case .unavailable(let error): throw .unavailable("password.store_unavailable", cause: error)
        }
    }

    /// What the store says; without it nobody is let through, because nobody could be counted.
    private func answer(
        _ ask: () async throws(StoreError) -> CounterReading
    ) async throws(AuthenticationError) -> CounterReading {
        do { return try await ask() } catch { throw .unavailable("password.store_unavailable", cause: error) }
    }

    private func key(_ counter: Counter, _ digest: String) -> String {
        context.storeKey("\(counter.rawValue):\(digest)")
    }

    private static func digest(_ kind: String, _ bytes: [UInt8]) -> String {
        Base64URL.encode(SHA256.digest(Array(kind.utf8) + [0] + bytes))
    }
}
