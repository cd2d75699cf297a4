internal import MartletCore

/// What a verification waits for: each kind has its own bound, so that a flood of one kind does not reject others.
enum WaitingKind: Hashable, Sendable {
    /// A thread, for a provider that verifies locally; an invalid signature costs as much as a valid one.
    case thread(provider: String)
    /// The session store.
    case sessions
    /// The account store.
    case accounts
    /// The proof of a bound credential: a signature, and the store.
    case proofs
    /// Keys: the provider has not fetched the key that a credential names; any client can name one.
    case keys(provider: String)
    /// A provider that always makes a request.
    case provider(String)

    private var bound: SharedBound {
        switch self {
        case .thread: .verificationThreads
        case .sessions: .verificationSessions
        case .accounts: .verificationAccounts
        case .proofs: .verificationProofs
        case .keys: .verificationKeys
        case .provider: .verificationCalls
        }
    }

    /// How many verifications may wait.
    var limit: Int { bound.total }

    /// How many of them may come from one network.
    var limitPerNetwork: Int { bound.addressPart(of: limit) }
}

/// Counts verifications that wait, by kind.
struct WaitingLimits {
    private struct Share: Hashable {
        let kind: WaitingKind
        let owner: WorkOwner
    }

    private var counts: [WaitingKind: Int] = [:]
    /// The same per network.
    private var shares: [Share: Int] = [:]

    /// Counts one in; `false` when the limit is reached.
    /// - Parameter owner: the network that the credential came from; unidentified networks have no limit of their own.
    mutating func enter(_ kind: WaitingKind, for owner: WorkOwner = .anonymous) -> Bool {
        let (count, share) = (counts[kind] ?? 0, Share(kind: kind, owner: owner))
        guard count < kind.limit else { return false }
        if owner != .anonymous {
            let own = shares[share] ?? 0
            guard own < kind.limitPerNetwork else { return false }
            shares[share] = own + 1
        }
        counts[kind] = count + 1
        return true
    }

    /// Counts one out.
    mutating func leave(_ kind: WaitingKind, for owner: WorkOwner = .anonymous) {
        if let count = counts[kind] { counts[kind] = count > 1 ? count - 1 : nil }
        let share = Share(kind: kind, owner: owner)
        if let own = shares[share] { shares[share] = own > 1 ? own - 1 : nil }
    }
}
