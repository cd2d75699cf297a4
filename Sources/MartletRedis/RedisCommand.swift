internal import MartletCore

/// A command with what its execution depends on.
package struct RedisCommand: Sendable {
    let arguments: [[UInt8]]
    let expectation: RedisExpectation
    /// The slot of its keys; `nil` without any.
    let slot: HashSlot?
    let traits: RedisCommandTraits

    /// - Parameter key: one of its keys, which determines the node; `nil` if any node can execute it.
    package init(
        _ arguments: [[UInt8]], expecting expectation: RedisExpectation = .anything, key: [UInt8]?,
        traits: RedisCommandTraits = []
    ) {
        self.arguments = arguments
        self.expectation = expectation
        self.traits = traits
        slot = key.map { HashSlot(of: $0) }
    }

    /// The error by which the server rejects this command; `nil` for a result, and for a script that it does not have
    /// cached, which is sent then.
    func rejection(in reply: RedisReply) -> StoreError? {
        guard case .error(let kind) = reply else { return nil }
        if kind == "NOSCRIPT", arguments.first == Array("EVALSHA".utf8) { return nil }
        return RedisErrorReply.storeError(kind)
    }
}

/// How a command may be treated.
package struct RedisCommandTraits: OptionSet, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Executing it twice is the same as once, also for who gets the second reply.
    package static let isRepeatable = RedisCommandTraits(rawValue: 1)
    /// A script that uses several keys of one slot: those that it is given, or others whose names it composes.
    package static let hasManyKeys = RedisCommandTraits(rawValue: 2)
    /// The reply is held back until a replica has the write, or has had its time.
    package static let waitsForReplicas = RedisCommandTraits(rawValue: 4)
    /// A read whose value may be older than the last write, so a replica may serve it.
    static let acceptsReplicas = RedisCommandTraits(rawValue: 8)
}
