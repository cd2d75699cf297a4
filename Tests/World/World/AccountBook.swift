import WorldMachine

/// Whose account is whose: what the responses of logins and the identities at upstreams say, and what follows from it.
final class AccountBook {
    /// A deletion that a client asked for.
    final class Deletion {
        let subject: String
        let askedAt: Int64
        /// When it was acknowledged.
        var acknowledgedAt: Int64?
        /// Sessions that end with it.
        let sessions: [Session]

        /// Whether identities may have left the account after a time, or shortly before.
        func mayEndAfter(_ time: Int64) -> Bool { (acknowledgedAt ?? .max / 2) + 100_000_000_000 > time }

        init(_ subject: String, at time: Int64, sessions: [Session]) {
            self.subject = subject
            askedAt = time
            self.sessions = sessions
        }
    }

    unowned let simulation: Simulation
    /// The account of an identity, and the identity of an account.
    private var current: [String: String] = [:]
    private var owners: [String: String] = [:]
    private(set) var deletions: [Deletion] = []
    /// Identities of the accounts of others.
    private var links: [String: String] = [:]
    /// When a login of an identity was last sent.
    private(set) var lastLogins: [String: Int64] = [:]
    private var logins: [String: Int] = [:]
    /// When users have withdrawn their consent.
    private(set) var revocations: [String: Int64] = [:]

    /// Identities that their issuer has deleted: the account may be one whose login has not been seen.
    private var closed: Set<String> = []

    /// Until when what is left of an end of sessions may be done, which ends those that began meanwhile, too.
    private var lateEnds: [String: Int64] = [:]

    init(_ simulation: Simulation) { self.simulation = simulation }

    /// A gateway could not end an account's sessions, and tries again for as long as the longest pause takes.
    func endHasFailed(of account: String) { lateEnds[account] = now + 30_000_000_000 }

    /// An issuer deletes an identity, and with it the account.
    func close(_ identity: String) { closed.insert(links[identity] ?? identity) }

    /// An issuer has refused a grant of an identity: what began until then ends.
    func consentIsGone(of identity: String) {
        if let account = current[links[identity] ?? identity] { lateEnds[account] = max(lateEnds[account] ?? 0, now) }
    }

    /// Whether a session that began at a time, or a login then, may be ended by what was left of an earlier end.
    func mayEndLate(_ account: String?, since time: Int64) -> Bool { (account.flatMap { lateEnds[$0] } ?? -1) >= time }

    private var hasAccounts: Bool { simulation.plan.callers.hasAccounts }
    private var now: Int64 { simulation.machine.now }

    /// Whether an identity was seen as a subject that is its own.
    /// - Parameter time: when the request was sent.
    /// - Returns: what is wrong.
    func observe(_ given: String, as subject: String, sentAt time: Int64) -> String? {
        let identity = links[given] ?? given
        guard hasAccounts else { return identity == subject ? nil : "\(identity) was \(subject)" }
        guard subject.hasPrefix("usr_") else { return "\(identity) was \(subject), which is no account" }
        if let owner = owners[subject], owner != identity { return "\(identity) was \(subject), which is \(owner)'s" }
        let old = current[identity]
        if let old, old != subject {
            // A response that is late: its account was deleted since it was asked for.
            if let deletion = lastDeletion(of: subject), deletion.acknowledgedAt ?? .max > time { return nil }
            let deletion = lastDeletion(of: old)
            guard deletion != nil || closed.contains(identity) else {
                return "\(identity) was \(old), and is \(subject)"
            }
            // An old view of it, of a request that was sent before.
            if owners[subject] != nil, deletion?.askedAt ?? .min < time { return "\(identity) is \(subject) again" }
        }
        owners[subject] = identity
        if lastDeletion(of: subject) == nil || old == nil { current[identity] = subject }
        return nil
    }

    /// Whether an identity may have left its account since a credential of it was issued, or shortly before.
    func hasLeft(_ given: String, since time: Int64) -> Bool {
        let identity = links[given] ?? given
        return (revocations[identity] ?? .min / 2) + 3_000_000_000 + simulation.plan.skew > time
            || deletions.contains { $0.mayEndAfter(time - simulation.plan.skew) && owners[$0.subject] == identity }
    }

    /// Whether a login that was sent at a time may have been overtaken by the end of its account, or have come before it
    /// by a clock that is late.
    func mayOvertake(_ given: String, since time: Int64) -> Bool {
        let identity = links[given] ?? given
        // An operator has ended the account's sessions, or its user has.
        if simulation.ledger.endings.contains(where: { $0.subject == current[identity] && $0.until > time }) {
            return true
        }
        return deletions.contains { deletion in
            guard owners[deletion.subject] == identity else { return false }
            let grace: Int64 = simulation.plan.skew == 0 && simulation.wasQuiet(from: deletion.askedAt) ? 1 : 100
            return (deletion.acknowledgedAt ?? .max / 2) + grace * 1_000_000_000 > time
        }
    }

    func lastDeletion(of subject: String) -> Deletion? { deletions.last { $0.subject == subject } }

    /// Whether an account's end was acknowledged for long enough that nothing of it works.
    func isGone(_ subject: String, at time: Int64) -> Bool {
        deletions.contains { deletion in
            // A clock that is late grants a grace period.
            guard deletion.subject == subject, let end = deletion.acknowledgedAt, simulation.plan.skew == 0 else {
                return false
            }
            return time > end + (simulation.wasQuiet(from: deletion.askedAt) ? 20_000_000_000 : 100_000_000_000)
                + simulation.plan.skew
        }
    }

    // MARK: Logins

    /// A login is sent: it may end a session beyond the most that a subject may have.
    func sends(_ given: String) {
        let identity = links[given] ?? given
        lastLogins[identity] = now
        logins[identity, default: 0] += 1
        for session in simulation.ledger.sessions where owner(session) == identity { lookForEviction(session) }
    }

    private func owner(_ session: Session) -> String { links[session.identity] ?? session.identity }

    /// A login beyond the most ends the oldest session of the same app, which may be the newest of all.
    private func lookForEviction(_ session: Session) {
        if logins[owner(session), default: 0] > simulation.plan.callers.sessionsPerSubject {
            session.mayEnd(from: now)
        }
    }

    /// A login has begun a session.
    func begun(_ session: Session, _ exchange: Exchange) {
        if let wrong = observe(session.identity, as: session.subject, sentAt: exchange.sentAt) {
            simulation.ledger.violate(.identity, "in the login \(exchange.number), \(wrong)")
        }
        lookForEviction(session)
        if isGone(session.subject, at: exchange.sentAt) {
            simulation.ledger.violate(
                .deletion, "login \(exchange.number) began a session of \(session.subject), which was deleted")
        }
        // It may have begun before an end of all of them, or after it; and what a deletion left to be done ends it, too.
        if lastDeletion(of: session.subject) != nil
            || revocations[session.identity] ?? .min / 2 > exchange.sentAt - 10_000_000_000
            || simulation.ledger.endings.contains(where: {
                $0.subject == session.subject && $0.until > exchange.sentAt
            })
        {
            session.endAsked = now
            session.isUnsure = true
        }
    }

    // MARK: Links

    /// An identity belongs to the account of another one; and no longer.
    func link(_ identity: String, to other: String) { links[identity] = other }
    func unlink(_ identity: String) { links[identity] = nil }

    // MARK: Ends

    /// The account of an identity, as far as it is known.
    func account(of identity: String) -> String? { current[identity] }

    /// A user is about to withdraw the consent: what has begun by it ends, whatever account it is of.
    func revoked(_ identity: String) {
        revocations[identity] = now
        for session in simulation.ledger.sessions where session.identity == identity {
            session.mayEnd(from: now)
        }
    }

    func askRevocation(of subject: String) -> [Session] {
        simulation.ledger.endings.append(Ledger.Ending(subject: subject))
        return askEnd(of: subject)
    }

    /// Everything of a subject is asked to end.
    func askEnd(of subject: String, _ provider: String? = nil) -> [Session] {
        let sessions = simulation.ledger.sessions.filter {
            $0.subject == subject && (provider == nil || $0.identity.hasPrefix(provider ?? ""))
        }
        for session in sessions { session.mayEnd(from: now) }
        return sessions
    }

    /// All sessions of a subject but one are asked to end.
    func askEnd(of subject: String, except kept: Session) -> [Session] {
        let sessions = simulation.ledger.sessions.filter { $0.subject == subject && $0 !== kept }
        for session in sessions { session.mayEnd(from: now) }
        return sessions
    }

    /// Their end is acknowledged.
    func end(_ sessions: [Session], _ exchange: Exchange) {
        let isQuiet = simulation.plan.skew == 0 && simulation.wasQuiet(from: exchange.sentAt)
        for session in sessions where session.end == nil {
            if isQuiet {
                session.end = (now, exchange.gateway, exchange.incarnation)
            } else {
                // At the latest when all faults have been over for a while.
                session.end = (max(now, simulation.plan.calm) + 60_000_000_000 + simulation.plan.skew, 0, 0)
            }
        }
    }

    func askDeletion(of subject: String) -> Deletion {
        let deletion = Deletion(subject, at: now, sessions: askEnd(of: subject))
        deletions.append(deletion)
        simulation.ledger.endings.append(Ledger.Ending(subject: subject))
        return deletion
    }

    func acknowledge(_ deletion: Deletion, _ exchange: Exchange) {
        deletion.acknowledgedAt = now
        end(deletion.sessions, exchange)
        simulation.ledger.closeEndings(of: deletion.subject)
    }
}
