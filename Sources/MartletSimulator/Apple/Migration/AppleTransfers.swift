internal import MartletCore

/// The transfers of apps between teams, and their users. Thread-safe.
final class AppleTransfers: Sendable {
    /// How many users of transfers are kept.
    private static let capacity = 10_000

    private let state = Lock(Transfers(capacity: AppleTransfers.capacity))

    /// Accepts a transfer.
    /// - Returns: whether there was room for it.
    func accept(_ transfer: TeamTransfer) -> Bool { state.withLock { $0.accept(transfer) } }

    /// The names of a user of the old team; `nil` if no transfer between the teams is open.
    func export(
        _ subject: String, from fromTeam: String, to toTeam: String, usesRelay: Bool, at now: UnixTime
    ) -> TransferredUser? {
        state.withLock { state in
            guard let transfer = state.open(from: fromTeam, to: toTeam, at: now) else { return nil }
            return state.user(subject, in: transfer, usesRelay: usesRelay)
        }
    }

    /// The user of a transfer subject; `nil` if it is unknown to the team, or the transfer is not open.
    func user(transferSubject: String, to team: String, at now: UnixTime) -> TransferredUser? {
        state.withLock { $0.user(transferSubject: transferSubject, to: team, at: now) }
    }

    /// The value of `transfer_sub` in tokens of the new team; `nil` for other subjects.
    func transferSubject(of newSubject: String, at now: UnixTime) -> String? {
        state.withLock { $0.transferSubject(of: newSubject, at: now) }
    }
}
