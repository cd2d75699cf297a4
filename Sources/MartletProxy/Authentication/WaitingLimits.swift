internal import MartletCore

/// What a verdict waits for: each kind is bounded by itself, so that a flood of one turns away nobody else.
enum WaitingKind: Hashable, Sendable {
    /// A thread, for a provider that judges by itself; a bad signature costs as much as a good one.
    case thread(provider: String)
    /// The store's word on a session.
    case sessions
    /// The subject of what was proved.
    case accounts
    /// A provider that judges by keys and has not got the one that a credential names; anybody can name one.
    case keys(provider: String)
    /// A provider that always has to ask somebody.
    case provider(String)

    /// How many verdicts may wait.
    var limit: Int {
        switch self {
        case .thread, .sessions, .accounts: 4096
        case .keys: 256
        case .provider: 1024
        }
    }

    /// How many of them may be one network's; those of the store and of accounts are divided where they are asked.
    var limitPerNetwork: Int {
        switch self {
        case .sessions, .accounts: limit
        case .thread: limit / 2
        case .keys, .provider: limit / 4
        }
    }
}

/// How many verdicts wait for what.
struct WaitingLimits {
    private struct Share: Hashable {
        let kind: WaitingKind
        let owner: WorkOwner
    }

    private var counts: [WaitingKind: Int] = [:]
    /// The same for each network that has some waiting.
    private var shares: [Share: Int] = [:]

    /// Counts one in; `false` when as many wait as may.
    /// - Parameter owner: the network that the credential came from; who is not told apart has no bound of their own.
    mutating func enter(_ kind: WaitingKind, for owner: WorkOwner = .anybody) -> Bool {
        let (count, share) = (counts[kind] ?? 0, Share(kind: kind, owner: owner))
        guard count < kind.limit else { return false }
        if owner != .anybody {
            let own = shares[share] ?? 0
            guard own < kind.limitPerNetwork else { return false }
            shares[share] = own + 1
        }
        counts[kind] = count + 1
        return true
    }

    /// Counts one out that was counted in.
    mutating func leave(_ kind: WaitingKind, for owner: WorkOwner = .anybody) {
        if let count = counts[kind] { counts[kind] = count > 1 ? count - 1 : nil }
        let share = Share(kind: kind, owner: owner)
        if let own = shares[share] { shares[share] = own > 1 ? own - 1 : nil }
    }
}
