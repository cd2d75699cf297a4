@testable import MartletRedis

/// What has happened against a promise.
enum ReplicationViolation: String {
    /// A refresh token of an ended session is accepted by the master.
    case refreshAfterEnd = "an ended session is refreshed"
    /// An access token of an ended session is accepted for longer than may be.
    case useAfterEnd = "an ended session is used for too long"
    /// A master that has the end of a session accepts its tokens.
    case endUndone = "a session is back at a server that has its end"
    /// A session that an instance has acknowledged is not there.
    case loginLost = "an acknowledged login is lost"
    /// The newest pair that an instance has acknowledged and repeated is not the session's.
    case refreshLost = "an acknowledged refresh is lost"
    /// A token is exchanged by a server that knows that it was exchanged before.
    case exchangedTwice = "a used refresh token is exchanged again"
    /// Tokens of two chains are exchanged by one master.
    case twoChains = "two chains of one session are live"
}

/// The conditions under which `ReplicationViolation` must not happen. A test takes one away, to see that it is needed.
struct ReplicationConditions: OptionSet {
    let rawValue: Int

    /// The instance that acknowledged has not ended.
    static let instanceLives = ReplicationConditions(rawValue: 1)
    /// It has repeated its writes at this master.
    static let hasRepeated = ReplicationConditions(rawValue: 2)
    /// The instance that is asked has found this master.
    static let hasFoundMaster = ReplicationConditions(rawValue: 4)
    /// The master was found within 60 s of an end, or 30 s of a login.
    static let foundInTime = ReplicationConditions(rawValue: 8)
    /// A login was acknowledged at most 2 s before its master was lost.
    static let isRecent = ReplicationConditions(rawValue: 16)
    /// No rotation has met another token of its generation.
    static let isOneBranch = ReplicationConditions(rawValue: 128)
    /// Refreshes are not promised to last.
    static let losesRefreshes = ReplicationConditions(rawValue: 256)

    /// Logins, and ends, are not promised to last; only where a test is about something else.
    static let losesLogins = ReplicationConditions(rawValue: 512)
    static let losesEnds = ReplicationConditions(rawValue: 1024)

    static let all = ReplicationConditions(rawValue: 415)
}

extension ReplicationModel {
    /// What is broken in this state.
    func violation(_ conditions: ReplicationConditions) -> ReplicationViolation? {
        if let broken, broken != .twoChains || isOneBranch(conditions) { return broken }
        if !conditions.contains(.hasFoundMaster), sessions.contains(where: \.isAtBoth) { return .twoChains }
        for number in sessions.indices {
            let lost = lostLogin(number, conditions) ?? lostRefresh(number, conditions)
            if let found = lost ?? endedSession(number, conditions) { return found }
        }
        return nil
    }

    private func isOneBranch(_ conditions: ReplicationConditions) -> Bool {
        !conditions.contains(.isOneBranch) || !sessions.contains { $0.isJoined }
    }

    private func lostLogin(_ number: Int, _ conditions: ReplicationConditions) -> ReplicationViolation? {
        guard !conditions.contains(.losesLogins), isMasterUp, let login = sessions[number].login,
            !sessions[number].hasEnded, servers[master].sessions[number] == nil
        else { return nil }
        return lasts(login, conditions) ? .loginLost : nil
    }

    private func lostRefresh(_ number: Int, _ conditions: ReplicationConditions) -> ReplicationViolation? {
        guard !conditions.contains(.losesRefreshes), isMasterUp, !sessions[number].hasEnded,
            let newest = pairs.lastIndex(where: { $0.session == number && $0.isAcknowledged }),
            let rotation = pairs[newest].rotation, let session = servers[master].sessions[number],
            session.current != newest
        else { return nil }
        return lasts(rotation, conditions) ? .refreshLost : nil
    }

    /// Whether what an instance has acknowledged is under the conditions of the promise.
    private func lasts(_ write: (instance: Int, at: Int), _ conditions: ReplicationConditions) -> Bool {
        let instance = instances[write.instance]
        guard instance.isAlive else { return !conditions.contains(.instanceLives) }
        // One that has not found this master may do so later.
        guard instance.reign == reign else { return false }
        if conditions.contains(.hasRepeated), instance.repeatedReign != reign { return false }
        if conditions.contains(.isRecent), instance.lostAt - write.at > milliseconds(RecentWrites.writeWindow) {
            return false
        }
        let lifetime = milliseconds(RecentWrites.writeLifetime)
        return !conditions.contains(.foundInTime) || instance.foundAt - write.at <= lifetime
    }

    private func endedSession(_ number: Int, _ conditions: ReplicationConditions) -> ReplicationViolation? {
        guard !conditions.contains(.losesEnds), servers[master].ended[number] || !sessions[number].ends.isEmpty else {
            return nil
        }
        for index in instances.indices where instances[index].isAlive {
            guard isAtMaster(index) || !conditions.contains(.hasFoundMaster) && isConnected(index) else { continue }
            for pair in pairs.indices where pairs[pair].session == number && pairs[pair].isAcknowledged {
                if let found = accepts(pair, of: number, at: index, conditions) { return found }
            }
        }
        return nil
    }

    /// Whether an instance accepts a token of an ended session that it must not.
    private func accepts(
        _ pair: Int, of number: Int, at index: Int, _ conditions: ReplicationConditions
    ) -> ReplicationViolation? {
        let store = servers[instances[index].server ?? master]
        var isRefreshed = false
        switch store.read(pair, of: number, at: now) {
        case .current, .again: isRefreshed = true
        case .unknown, .reused: break
        }
        let isFound = store.accepts(access: pair, of: number, at: now)
        if store.ended[number], isRefreshed || isFound { return .endUndone }
        let isCopied = instances[index].copies.contains { $0.pair == pair && now < $0.expiry }
        for end in sessions[number].ends where holds(end, conditions) {
            if isRefreshed, end.reign == reign || hasRepeated(end) || !conditions.contains(.hasRepeated) {
                return .refreshAfterEnd
            }
            // A copy may be from the master before.
            let known =
                end.reign == reign
                ? max(end.at, instances[index].foundAt) : end.at + milliseconds(RecentWrites.endLifetime)
            if isFound || isCopied, now > known + ReplicationRules.cacheTTL { return .useAfterEnd }
        }
        return nil
    }

    /// Whether an instance has repeated an end, or never will.
    private func hasRepeated(_ end: End) -> Bool {
        !instances[end.instance].isAlive || instances[end.instance].repeatedReign == reign
    }

    /// Whether an end is under the conditions of the promise.
    private func holds(_ end: End, _ conditions: ReplicationConditions) -> Bool {
        let instance = instances[end.instance]
        if end.reign == reign { return true }
        if conditions.contains(.instanceLives), !instance.isAlive { return false }
        let foundAt = instance.reign == reign ? instance.foundAt : now
        return !conditions.contains(.foundInTime) || foundAt - end.at <= milliseconds(RecentWrites.endLifetime)
    }

    private func milliseconds(_ duration: Duration) -> Int { Int(duration / .milliseconds(1)) }
}
