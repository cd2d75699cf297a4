package import MartletProvider

/// An identity as a transfer to another team of developers finds it.
package struct TransferableIdentity: Sendable, Equatable {
    /// The id of the identity in the store; identities are listed in this order.
    package let id: String
    /// The account's subject.
    package let account: String
    /// The main subject at the issuer.
    package let subject: String
    /// `nil` if nothing is known.
    package let state: IdentityState?
    /// The last transfer; `nil` if it was never exported.
    package let recorded: RecordedTransfer?
}

/// A transfer of an identity in the store.
package struct RecordedTransfer: Sendable, Equatable {
    package let transfer: IdentityTransfer
    /// The subject at the old team.
    package let oldSubject: String
    /// Whether the identity has its subject at the new team.
    package let isDone: Bool

    package init(transfer: IdentityTransfer, oldSubject: String, isDone: Bool) {
        self.transfer = transfer
        self.oldSubject = oldSubject
        self.isDone = isDone
    }
}

/// The outcome of an export.
package enum ExportOutcome: Sendable, Hashable {
    case exported
    /// The identity was removed, revoked or re-keyed meanwhile.
    case changed
    /// Another identity has this transfer subject.
    case conflict
}

/// The outcome of giving an identity its subject at the new team.
package enum RekeyOutcome: Sendable, Hashable {
    /// The account has the new subject from now on.
    case rekeyed(account: String)
    /// It had the new subject before.
    case alreadyDone
    /// No identity was exported with this transfer subject between these teams.
    case unknown
    /// The new subject belongs to another identity.
    case conflict
    /// The user's account at the issuer is gone.
    case deleted
}
