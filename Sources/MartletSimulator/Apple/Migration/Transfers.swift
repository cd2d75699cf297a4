internal import MartletCore
private import MartletCrypto

/// An app that moves from one team to another, with its users.
struct TeamTransfer: Sendable {
    /// Sixty days.
    static let window: Int64 = 60 * 86_400

    let fromTeam: String
    let toTeam: String
    let acceptedAt: UnixTime

    /// Whether users can be moved, and tokens of the new team name their `transfer_sub`.
    func isOpen(at now: UnixTime) -> Bool {
        now >= acceptedAt && now < acceptedAt.advanced(bySeconds: Self.window)
    }
}

/// A user of an app that moves: three names, one for each side and one for the way.
struct TransferredUser: Sendable {
    let fromTeam: String
    let toTeam: String
    let subject: String
    let transferSubject: String
    let newSubject: String
    /// The address at the new team; `nil` for a user who has shared a real one.
    let relayAddress: String?

    /// The names are derived, so that they are the same each time.
    init(_ subject: String, in transfer: TeamTransfer, usesRelay: Bool) {
        func name(_ purpose: String) -> String {
            let digest = SHA256.digest(Array("\(purpose)\n\(transfer.fromTeam)\n\(transfer.toTeam)\n\(subject)".utf8))
            return Hexadecimal.text(digest.prefix(16))
        }
        fromTeam = transfer.fromTeam
        toTeam = transfer.toTeam
        self.subject = subject
        transferSubject = "760417.r\(name("transfer"))"
        newSubject = "001901.\(name("subject")).1901"
        relayAddress = usesRelay ? "\(name("relay").prefix(10))@privaterelay.appleid.com" : nil
    }
}

/// The transfers between teams, and the users that are asked for.
struct Transfers: Sendable {
    static let capacity = 16

    private var all: [TeamTransfer] = []
    private var byTransferSubject: BoundedTable<TransferredUser>
    private var byNewSubject: BoundedTable<TransferredUser>

    init(capacity: Int) {
        byTransferSubject = BoundedTable(capacity: capacity)
        byNewSubject = BoundedTable(capacity: capacity)
    }

    /// Accepts a transfer, in exchange for an earlier one between the teams.
    /// - Returns: whether there was room for it.
    mutating func accept(_ transfer: TeamTransfer) -> Bool {
        all.removeAll { $0.fromTeam == transfer.fromTeam && $0.toTeam == transfer.toTeam }
        guard all.count < Self.capacity else { return false }
        all.append(transfer)
        return true
    }

    private func open(from fromTeam: String, to toTeam: String, at now: UnixTime) -> TeamTransfer? {
        all.first {
            $0.fromTeam.hasSameBytes(as: fromTeam) && $0.toTeam.hasSameBytes(as: toTeam) && $0.isOpen(at: now)
        }
    }

    /// The names of a user of the old team; `nil` if no transfer between the teams is open.
    mutating func export(
        _ subject: String, from fromTeam: String, to toTeam: String, usesRelay: Bool, at now: UnixTime
    ) -> TransferredUser? {
        guard let transfer = open(from: fromTeam, to: toTeam, at: now) else { return nil }
        let user = TransferredUser(subject, in: transfer, usesRelay: usesRelay)
        byTransferSubject.insert(user, as: user.transferSubject)
        byNewSubject.insert(user, as: user.newSubject)
        return user
    }

    /// The user of a transfer subject, while the transfer to a team is open.
    func user(transferSubject: String, to team: String, at now: UnixTime) -> TransferredUser? {
        guard let user = byTransferSubject[transferSubject], user.toTeam.hasSameBytes(as: team),
            open(from: user.fromTeam, to: user.toTeam, at: now) != nil
        else { return nil }
        return user
    }

    /// The value of `transfer_sub` in tokens of the new team, while the transfer is open.
    func transferSubject(of newSubject: String, at now: UnixTime) -> String? {
        guard let user = byNewSubject[newSubject], open(from: user.fromTeam, to: user.toTeam, at: now) != nil else {
            return nil
        }
        return user.transferSubject
    }
}
