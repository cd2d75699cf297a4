import WorldMachine

extension Client {
    /// Deletes the user's account: after 202 it ends, whatever happens.
    func delete(_ session: Session, _ next: @escaping (Exchange?) -> Void) {
        guard !session.isRefreshing, let token = session.access.last?.token else { return next(nil) }
        let book = simulation.ledger.accounts
        let deletion = book.askDeletion(of: session.subject)
        request("DELETE", "/auth/account", .session(session), fields: ["Authorization: Bearer \(token)"]) {
            [self] exchange in
            if let exchange, exchange.status == 202 { book.acknowledge(deletion, exchange) }
            simulation.ledger.closeEndings(of: deletion.subject)
            if let apple { simulation.machine.after(3_000_000_000) { apple.issuer.forget(apple.subject) } }
            if let exchange, exchange.status == 401 || exchange.status == 0 {
                for session in deletion.sessions { session.isUnsure = true }
            }
            next(exchange)
        }
    }

    /// Ends every session of the user.
    func endAll(_ session: Session, _ next: @escaping (Exchange?) -> Void) {
        guard !session.isRefreshing, let token = session.access.last?.token else { return next(nil) }
        let ledger = simulation.ledger!
        let sessions = ledger.accounts.askEnd(of: session.subject)
        ledger.endings.append(Ledger.Ending(subject: session.subject))
        request("POST", "/auth/logout?all=true", .session(session), fields: ["Authorization: Bearer \(token)"]) {
            exchange in
            if let exchange, exchange.status == 204 {
                ledger.accounts.end(sessions, exchange)
            }
            ledger.closeEndings(of: session.subject)
            next(exchange)
        }
    }
}

extension Ledger {
    /// An end of all sessions of a subject that was asked for; a session that begins meanwhile may end with it.
    struct Ending {
        let subject: String
        var until = Int64.max
    }

    func closeEndings(of subject: String) {
        for index in endings.indices where endings[index].subject == subject && endings[index].until == .max {
            endings[index].until = simulation.machine.now
        }
    }
}

extension Simulation {
    /// Whether a disk failed shortly before.
    var diskFailed: Bool {
        plan.faults.contains { fault in
            guard case .diskFails = fault.kind else { return false }
            return fault.at <= machine.now && fault.at + fault.duration + 30_000_000_000 > machine.now
        }
    }

    /// Whether nothing that a gateway or its stores would notice went wrong from shortly before a time until now.
    func wasQuiet(from time: Int64) -> Bool {
        plan.faults.allSatisfy { fault in
            switch fault.kind {
            case .upstreamDies, .upstreamHangs, .upstreamUnreachable: true
            default: fault.at > machine.now || fault.at + fault.duration + 8_000_000_000 < time
            }
        }
    }
}
