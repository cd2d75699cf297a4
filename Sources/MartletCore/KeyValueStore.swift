/// The result of a read from the shared store. An outage is never reported as a miss.
public enum StoreReply<Value: Sendable>: Sendable {
    case found(Value)
    case miss
    case unavailable(StoreError)
}

/// Why an operation on the shared store failed.
public struct StoreError: CodedError {
    public let code: ErrorCode
    /// For operators; holds no key, value or secret.
    public let message: String

    public init(code: ErrorCode, message: String) {
        self.code = code
        self.message = message
    }
}

extension StoreError {
    /// How long a client waits after ``shareUsedUp``: values expire one by one.
    public static let shareRetryAfter = Duration.seconds(5)

    /// A partition has no capacity left.
    static let full = StoreError(code: .storeFull, message: "the memory store is full")
    /// A partition has capacity, but not for this owner.
    static let shareUsedUp = StoreError(code: .storeShareUsedUp, message: "one client's share of the store is used up")
}

extension ErrorCode {
    /// A partition of the store is full.
    public static let storeFull: ErrorCode = "store.full"
    /// One network, subject or key has used up its share of a partition: 429 for that one alone.
    public static let storeShareUsedUp: ErrorCode = "store.share_used_up"
}

/// A store that instances share: small values with an expiry.
///
/// Every call has a timeout of the store's own and ends with a value, a miss or `unavailable`.
public protocol KeyValueStoring: Sendable {
    /// Reads one value.
    func value(for key: String) async -> StoreReply<[UInt8]>
    /// Reads one value that may be older than the last write, or removed since: a replica may serve it.
    ///
    /// For values that carry their own time. A miss and an outage are those of ``value(for:)``.
    func replicatedValue(for key: String) async -> StoreReply<[UInt8]>
    /// Writes one value that expires after `lifetime`.
    func set(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError)
    /// Writes only if the key is absent; `true` when this call wrote. Atomic across instances.
    func setIfAbsent(_ value: [UInt8], for key: String, lifetime: Duration) async throws(StoreError) -> Bool
    /// Removes the value if it still equals `value`; used to release a lease. Atomic across instances.
    func remove(_ key: String, ifEqualTo value: [UInt8]) async throws(StoreError)
}

extension KeyValueStoring {
    /// The current value.
    public func replicatedValue(for key: String) async -> StoreReply<[UInt8]> { await value(for: key) }
}

/// A store as a whole: a value is written through the partition for its purpose, and counted for its owner.
///
/// What a client can fill is divided: an owner that has used up its share gets ``StoreError/shareUsedUp``, and the
/// others have their capacity.
public protocol PartitionedStoring: Sendable {
    /// The partition of the store for one purpose.
    ///
    /// A value is read through the partition it was written through, for whichever owner.
    /// - Parameter owner: who causes what is written; ``WorkOwner/gateway`` for what no client can multiply.
    func partition(_ purpose: StorePurpose, for owner: WorkOwner) -> any SharedStoring
    /// Counts an attempt in the bucket that it belongs to, unless that bucket is banned.
    ///
    /// All keys have one hash tag. Atomic across instances, where the store has several.
    /// - Parameter owner: who makes the attempt.
    func count(_ attempt: CountedAttempt, for owner: WorkOwner) async throws(StoreError) -> AttemptCount
    /// Whether some keys are available, though others are not: the servers of a cluster fail one by one.
    var isPartlyAvailable: Bool { get }
}

/// A store that also supports single-use values and counters: nonces, codes, attempts.
public protocol SharedStoring: KeyValueStoring, PartitionedStoring {
    /// Removes the value, whatever it is.
    func remove(_ key: String) async throws(StoreError)
    /// Reads and removes a value: only one of concurrent callers gets it. Atomic across instances.
    func take(_ key: String) async -> StoreReply<[UInt8]>
    /// Adds 1 to a counter and returns its new value.
    ///
    /// The counter starts at 0 and expires `lifetime` after its first increment. Atomic across instances.
    func increment(_ key: String, lifetime: Duration) async throws(StoreError) -> CounterReading
    /// Subtracts 1 from a counter above 0 and leaves its expiry unchanged. Atomic across instances.
    ///
    /// Optional: a store may do nothing, and the surplus ends when the counter expires.
    func decrement(_ key: String) async throws(StoreError)
    /// Reads a counter without changing it; an absent counter reads 0.
    func counter(_ key: String) async throws(StoreError) -> CounterReading
    /// Removes several values, whatever they are.
    func remove(_ keys: [String]) async throws(StoreError)
}

/// What values in the store are for; in a bounded store, one purpose cannot use up the capacity of another.
@frozen public enum StorePurpose: Sendable, CaseIterable {
    /// Values without a purpose of their own, such as those of other providers.
    case general
    /// Issuer keys, the leases for fetching them, and the nonce key.
    case keys
    /// Counters of attempts and failures.
    case throttles
    /// Users who are temporarily locked out.
    case bans
    /// Locations from which users have logged in.
    case loginLocations
    /// Used nonces.
    case nonces
    /// Used codes and client data.
    case codes
    /// Used proofs of possession.
    case proofs
    /// Used nonces of signed requests.
    case signatures
    /// Used sign-ins of browsers, and the codes of apps that signed in by one.
    case browsers
    /// Results of posts, for repeated posts.
    case outcomes
    /// Changes that concern logins in progress.
    case changes
}

extension SharedStoring {
    /// The whole store.
    public func partition(_ purpose: StorePurpose, for owner: WorkOwner) -> any SharedStoring { self }

    /// Does nothing.
    public func decrement(_ key: String) async throws(StoreError) {}

    /// A store on one machine is available as a whole.
    public var isPartlyAvailable: Bool { false }

    /// Removes them one after the other.
    public func remove(_ keys: [String]) async throws(StoreError) {
        for key in keys { try await remove(key) }
    }

    /// Takes the steps one after the other: each is cheap where the store is in this process.
    public func count(_ attempt: CountedAttempt, for owner: WorkOwner) async throws(StoreError) -> AttemptCount {
        let bans = partition(.bans, for: owner)
        var known: [UInt8]?
        if let key = attempt.known {
            switch await partition(.loginLocations, for: owner).value(for: key) {
            case .found(let value): known = value
            case .miss: break
            case .unavailable(let error): throw error
            }
        }
        let bucket = known == nil ? attempt.common : attempt.own ?? attempt.common
        let none = CounterReading(count: 0, remaining: .zero)
        var ban = try await bans.counter(bucket.ban)
        guard ban.count == 0 else { return AttemptCount(known: known, ban: ban, attempts: none) }
        let attempts = try await partition(.throttles, for: owner)
            .increment(bucket.attempts, lifetime: attempt.lifetime)
        // Another attempt's failure may have started the ban, and reset the count, since the first check.
        ban = try await bans.counter(bucket.ban)
        return AttemptCount(known: known, ban: ban, attempts: attempts)
    }
}

/// An attempt that is counted before it is made.
public struct CountedAttempt: Sendable {
    /// Where attempts are counted, and where a ban is stored.
    public struct Bucket: Sendable {
        public let attempts: String
        public let ban: String

        public init(attempts: String, ban: String) {
            self.attempts = attempts
            self.ban = ban
        }
    }

    /// The key whose value, if there is one, puts the attempt into its own bucket; `nil` for the common one.
    public let known: String?
    public let own: Bucket?
    public let common: Bucket
    /// How long attempts are counted.
    public let lifetime: Duration

    public init(known: String?, own: Bucket?, common: Bucket, lifetime: Duration) {
        self.known = known
        self.own = own
        self.common = common
        self.lifetime = lifetime
    }

    /// The same attempt in the common bucket.
    package var inCommonBucket: CountedAttempt {
        CountedAttempt(known: nil, own: nil, common: common, lifetime: lifetime)
    }
}

/// What counting an attempt has found.
public struct AttemptCount: Sendable {
    /// The value of ``CountedAttempt/known``; `nil` if the attempt is in the common bucket.
    public let known: [UInt8]?
    /// The bucket's ban; above 0, the attempt must not be made.
    public let ban: CounterReading
    /// The attempts of the bucket, with this one.
    public let attempts: CounterReading

    public init(known: [UInt8]?, ban: CounterReading, attempts: CounterReading) {
        self.known = known
        self.ban = ban
        self.attempts = attempts
    }
}

/// The value of a counter and the time until it expires.
public struct CounterReading: Sendable, Equatable {
    public let count: Int
    /// The time until the counter restarts at 0.
    public let remaining: Duration

    public init(count: Int, remaining: Duration) {
        self.count = count
        self.remaining = remaining
    }
}
