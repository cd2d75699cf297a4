internal import MartletCore
internal import MartletRedis

/// What is wrong with a store that is connected: some of its masters are unavailable, or every command fails.
struct StoreImpairment {
    /// At most so many masters are named.
    private static let named = 8
    /// What servers say that are up, and of no use at present.
    private static let useless: Set<ErrorCode> = [
        .redisLoading, .redisTooManyClients, .redisReadOnly, .redisOutOfMemory, .redisMisconfigured, .redisNoReplicas,
        .redisMasterDown, .redisClusterDown, .redisMoved, .redisCommandUnknown, .redisBusy,
    ]

    /// Whether a store that is not connected is up, and says itself why it is of no use.
    static func isUseless(_ status: RedisStatus) -> Bool {
        status.state != .connected && status.lastError.map { useless.contains($0.code) } == true
    }

    let detail: String

    /// `nil` if nothing is wrong.
    init?(_ status: RedisStatus) {
        var reasons: [String] = []
        let lost = status.lostMasters.map { (name: $0.key.description, reason: $0.value.message) }
        for master in lost.sorted(by: { $0.name < $1.name }).prefix(Self.named) {
            reasons.append("master \(master.name) is unavailable: \(master.reason)")
        }
        if lost.count > Self.named { reasons.append("\(lost.count - Self.named) more masters are unavailable") }
        if status.unassignedSlots > 0 { reasons.append("\(status.unassignedSlots) slots have no master") }
        if !reasons.isEmpty { reasons.append("requests that need what is stored there get 503") }
        if let failure = status.commandFailure { reasons.append("commands fail: \(failure.message) [\(failure.code)]") }
        if let wait = status.missedLimitWait {
            reasons.append(
                "replies take longer than store.timeouts.shared_limit (\(wait.wholeMilliseconds)ms): "
                    + "shared limits count without the store")
        }
        guard !reasons.isEmpty else { return nil }
        detail = reasons.joined(separator: "; ")
    }
}
