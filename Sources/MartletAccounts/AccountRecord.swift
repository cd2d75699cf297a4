package import MartletCore
package import MartletJSON

/// An account as operators see it.
package struct AccountRecord: Sendable, Equatable {
    package let subject: String
    package let createdAt: UnixTime
    /// `nil` while it is active.
    package let disabledAt: UnixTime?
    /// Claims stored from first logins, such as `name`.
    package let storedClaims: JSONObject
    /// The claims of the account, whoever has set them.
    package let claims: JSONObject
    /// What the user says of themselves, which is among the claims unless others have set the same.
    package let profile: JSONObject
    /// `nil` if no deletion was requested.
    package let deletion: Deletion?

    /// The requested deletion of an account.
    package struct Deletion: Sendable, Equatable {
        /// When it begins; until then a login takes it back.
        package let dueAt: UnixTime
        /// Why, as in events.
        package let reason: String
        /// `nil` while it is in progress.
        package let deletedAt: UnixTime?

        package init(dueAt: UnixTime, reason: String, deletedAt: UnixTime?) {
            self.dueAt = dueAt
            self.reason = reason
            self.deletedAt = deletedAt
        }
    }

    package init(
        subject: String, createdAt: UnixTime, disabledAt: UnixTime?, storedClaims: JSONObject,
        claims: JSONObject = [:], profile: JSONObject = [:], deletion: Deletion? = nil
    ) {
        self.subject = subject
        self.createdAt = createdAt
        self.disabledAt = disabledAt
        self.storedClaims = storedClaims
        self.claims = claims
        self.profile = profile
        self.deletion = deletion
    }
}

/// Which accounts a list contains; a criterion that is `nil` or false matches all.
package struct AccountFilter: Sendable, Equatable {
    /// A claim of the account, as `name=value`: a value of a list counts, numbers and booleans as they are in JSON.
    package struct Claim: Sendable, Equatable {
        package let name: String
        package let value: String

        package init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// Leaves out active accounts.
    package var onlyDisabled: Bool
    package var claim: Claim?

    package init(onlyDisabled: Bool = false, claim: Claim? = nil) {
        self.onlyDisabled = onlyDisabled
        self.claim = claim
    }
}

/// A page of accounts.
package struct AccountListPage: Sendable {
    package let accounts: [AccountRecord]
    /// Where the next page starts; `nil` after the last one.
    package let next: String?
}
