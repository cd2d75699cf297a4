internal import MartletCore

/// Why servers do not say where keys are.
struct QuestionFailures {
    private var errors: [RedisURL.Address: StoreError] = [:]

    /// A server has replied, or not.
    mutating func answered(
        _ question: TopologyQuestion, by server: RedisURL.Address, _ result: RedisConnection.CommandResult
    ) {
        // Without the list of sentinels, the ones that are known are asked.
        guard question != .sentinels else { return }
        errors[server] = QuestionFailures.failure(of: question, result)
    }

    mutating func remove(_ server: RedisURL.Address) { errors[server] = nil }

    func contains(_ server: RedisURL.Address) -> Bool { errors[server] != nil }

    /// The reason, if every server has failed; `nil` while one of them may still reply.
    /// - Parameter isLost: whether a server cannot be reached.
    func reason(of servers: some Collection<RedisURL.Address>, isLost: (RedisURL.Address) -> Bool) -> StoreError? {
        guard servers.allSatisfy({ errors[$0] != nil || isLost($0) }) else { return nil }
        let found = servers.compactMap { errors[$0] }
        return found.first { $0.isAccessDenied } ?? found.first
    }

    private static func failure(
        of question: TopologyQuestion, _ result: RedisConnection.CommandResult
    ) -> StoreError? {
        switch result {
        case .success(let timed):
            switch timed.reply {
            case .error("ERR"): .questionRejected(question)
            case .error(let kind): RedisErrorReply.storeError(kind)
            case .array(let parts) where parts.isEmpty && question == .slots: .noSlots
            default: nil
            }
        case .failure(let error):
            switch error.code {
            case .redisNotPermitted: .questionNotPermitted(question)
            // The state of the connection says more.
            case .redisNotConnected, .redisConnectionLost, .redisStopped: nil
            default: error
            }
        }
    }
}

extension TopologyQuestion {
    /// The command without its arguments.
    var words: [String] {
        switch self {
        case .slots: ["CLUSTER", "SLOTS"]
        case .master: ["SENTINEL", "MASTER"]
        case .sentinels: ["SENTINEL", "SENTINELS"]
        }
    }
}

extension StoreError {
    /// A server does not know what it is asked for.
    fileprivate static func questionRejected(_ question: TopologyQuestion) -> StoreError {
        switch question {
        case .slots: StoreError(code: .redisNotCluster, message: "Redis does not run in cluster mode")
        case .master, .sentinels:
            StoreError(code: .redisMasterUnknown, message: "the sentinels do not know a master of that name")
        }
    }

    /// - Note: the right is written as in an access control list.
    fileprivate static func questionNotPermitted(_ question: TopologyQuestion) -> StoreError {
        let command = question.words.joined(separator: " ")
        let right = "+" + question.words.joined(separator: "|").lowercased()
        let user = question == .slots ? "the Redis user" : "the user of the sentinels"
        return StoreError(
            code: .redisNotPermitted, message: "\(user) is not permitted to run \(command): it needs \(right)")
    }

    fileprivate static let noSlots = StoreError(code: .redisClusterDown, message: "no node of the cluster has slots")
}
