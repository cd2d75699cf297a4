package import MartletCore
internal import MartletEvents
internal import MartletJSON
package import MartletProvider

/// Transfers of identities between teams of developers, whose subjects of a user differ.
///
/// Every method throws `unavailable` while the store is.
package struct IdentityTransferStore: Sendable {
    private let engine: any AccountEngine
    private let recorder: EventRecorder

    init(_ engine: any AccountEngine, _ recorder: EventRecorder) {
        self.engine = engine
        self.recorder = recorder
    }

    /// A page of a provider's identities, by their ids; those of deleted accounts are left out.
    /// - Parameters:
    ///   - id: the last id of the previous page; empty for the first.
    ///   - team: only identities that were exported to this team; `nil` for all.
    package func transferableIdentities(
        of provider: String, to team: String?, after id: String, limit: Int
    ) async throws(AccountError) -> [TransferableIdentity] {
        let page: [Query.Value] = [.text(provider), .text(id), .integer(Int64(clamping: max(limit, 1)))]
        let query =
            team.map { Query(TransferStatement.identitiesOfTeam, page + [.text($0)]) }
            ?? Query(TransferStatement.identities, page)
        return try await engine.rows(query, TransferableIdentity.init)
    }

    /// The identity of a subject; `nil` if there is none.
    package func transferableIdentity(
        of provider: String, subject: String
    ) async throws(AccountError) -> TransferableIdentity? {
        guard TextRules.isKey(subject) else { return nil }
        let query = Query(TransferStatement.identityOfSubject, .text(provider), .text(subject))
        return try await engine.rows(query, TransferableIdentity.init).first
    }

    /// Records a transfer subject, unless the identity has changed; its state is `transferred` from now on, and it is not
    /// checked.
    package func noteExported(
        _ identity: TransferableIdentity, of provider: String, as transfer: IdentityTransfer, at now: UnixTime
    ) async throws(AccountError) -> ExportOutcome {
        let texts = [provider, transfer.transferSubject, transfer.fromTeam, transfer.toTeam]
        guard texts.allSatisfy(TextRules.isKey) else { throw .textInvalid }
        let lookups = [
            Query(TransferStatement.lockIdentity, .text(identity.id)),
            Query(TransferStatement.transferOwner, .text(provider), .text(transfer.transferSubject)),
        ]
        return try await engine.transact(
            .run(lookups) { results throws(AccountError) in
                guard let row = results[0].first, try row.text(0).hasSameBytes(as: identity.subject),
                    try row.state(1)?.isOver != true
                else { return .end(.changed) }
                if let owner = results[1].first, try !owner.text(0).hasSameBytes(as: identity.id) {
                    return .end(.conflict)
                }
                let changes = JobQueries([
                    Query(
                        TransferStatement.putTransfer, .text(identity.id), .text(provider),
                        .text(transfer.transferSubject),
                        .text(identity.subject), .text(transfer.fromTeam), .text(transfer.toTeam),
                        .integer(now.seconds)),
                    Query(TransferStatement.markExported, .text(identity.id), .integer(now.seconds)),
                ])
                return changes.adding(Self.publication(of: identity.account, at: now.milliseconds))
                    .committed { _ in .exported }
            })
    }

    /// Gives an exported identity its subject at the new team, in one transaction, once. The grants of the old team are
    /// dropped; the old subject still leads to the account.
    /// - Parameter now: milliseconds since 1970.
    package func rekey(
        _ transfer: IdentityTransfer, of provider: String, to subject: String, at now: Int64
    ) async throws(AccountError) -> RekeyOutcome {
        guard TextRules.isKey(subject), TextRules.isKey(transfer.transferSubject) else { throw .textInvalid }
        let stamp = try EventRecorder.Stamp(at: now)
        // A login with the new subject, which has no row to lock yet, must not create an account meanwhile.
        let locks = engine.dialect == .postgresql ? [Query(.lock, .text("\(provider)\n\(subject)"))] : []
        let lookups = [
            Query(TransferStatement.lockTransfer, .text(provider), .text(transfer.transferSubject)),
            Query(TransferStatement.subjectOwner, .text(provider), .text(subject)),
        ]
        let outcome: RekeyOutcome = try await engine.transact(
            .run(locks + lookups) { results throws(AccountError) in
                guard let row = results[locks.count].first else { return .end(.unknown) }
                let exported = try ExportedIdentity(row)
                guard exported.isActive, exported.isBetween(transfer.fromTeam, transfer.toTeam) else {
                    return .end(.unknown)
                }
                if let owner = results[locks.count + 1].first, try !owner.text(0).hasSameBytes(as: exported.id) {
                    return .end(.conflict)
                }
                if exported.isDone { return .end(.alreadyDone) }
                guard !exported.isDeletedAtIssuer else { return .end(.deleted) }
                let changes = Self.changes(exported, provider, subject, at: now)
                let event = recorder.queries(
                    .identityTransferred, of: exported.account, stamp, data: ["provider": .string(provider)])
                return JobQueries(changes + event).adding(Self.publication(of: exported.account, at: now))
                    .committed { _ in .rekeyed(account: exported.account) }
            })
        if case .rekeyed = outcome { recorder.observers.signal() }
        return outcome
    }

    /// The state is a claim, of live sessions too.
    private static func publication(of account: String, at now: Int64) -> JobQueries {
        var changes = JobQueries([Query(.countClaimsChange, .text(account))])
        changes.add(.publishClaims, account, "", [:], dueAt: now, at: now)
        return changes
    }

    private static func changes(
        _ exported: ExportedIdentity, _ provider: String, _ subject: String, at now: Int64
    ) -> [Query] {
        let (id, seconds) = (Query.Value.text(exported.id), Query.Value.integer(now / 1000))
        return [
            Query(TransferStatement.addSubject, .text(provider), .text(subject), id),
            Query(TransferStatement.rekey, id, .text(subject), seconds),
            // They are encrypted for the old subject, and of no use to the new team.
            Query(LifeStatement.removeGrants, id),
            Query(TransferStatement.finish, id, seconds),
        ]
    }
}

/// A row of `lockTransfer`.
private struct ExportedIdentity {
    let id: String
    let account: String
    let isDone: Bool
    let isDeletedAtIssuer: Bool
    /// Whether its account exists.
    let isActive: Bool
    private let fromTeam: String
    private let toTeam: String

    init(_ row: Row) throws(AccountError) {
        id = try row.text(0)
        fromTeam = try row.text(1)
        toTeam = try row.text(2)
        isDone = try row.optionalInteger(3) != nil
        account = try row.text(4)
        isDeletedAtIssuer = try row.state(5) == .deleted
        isActive = try row.optionalInteger(6) == nil
    }

    func isBetween(_ from: String, _ to: String) -> Bool {
        fromTeam.hasSameBytes(as: from) && toTeam.hasSameBytes(as: to)
    }
}

extension TransferableIdentity {
    /// Decodes a row of a list.
    init(_ row: Row) throws(AccountError) {
        var recorded: RecordedTransfer?
        if let transferSubject = try row.optionalText(4) {
            recorded = RecordedTransfer(
                transfer: IdentityTransfer(
                    transferSubject: transferSubject, fromTeam: try row.text(5), toTeam: try row.text(6)),
                oldSubject: try row.text(7), isDone: try row.optionalInteger(8) != nil)
        }
        self.init(
            id: try row.text(0), account: try row.text(1), subject: try row.text(2),
            state: try row.state(3), recorded: recorded)
    }
}

extension IdentityState {
    /// Whether only a new login, if anything, makes the identity valid again.
    package var isOver: Bool { self == .revoked || self == .deleted }
}
