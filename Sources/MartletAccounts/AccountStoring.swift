package import MartletCore
package import MartletJSON
package import MartletProvider

/// An error of the account store.
package struct AccountError: CodedError {
    /// Determines the response status.
    package enum Kind: Sendable, Equatable {
        /// The store is unavailable: 503.
        case unavailable
        /// The identity is bound to another account: 409.
        case identityTaken
        /// The account already has another identity of the provider: 409.
        case providerAlreadyLinked
        /// The last identity of an account cannot be removed: 409.
        case lastIdentity
        /// The account, identity or user does not exist: 404.
        case notFound
        /// A user with this canonical name already exists.
        case duplicateUser
        /// A claim cannot be stored: 400.
        case invalidClaims
        /// What asks for a change is older than what has ended it: 401.
        case outdated
    }

    package let code: ErrorCode
    package let kind: Kind
    /// For operators; contains no secrets or personal data.
    package let message: String

    package init(_ code: ErrorCode, _ kind: Kind, _ message: String) {
        self.code = code
        self.kind = kind
        self.message = message
    }
}

/// An identity of an account: the provider's name in `providers:` and its subjects.
package struct AccountIdentity: Sendable, Equatable {
    package let provider: String
    /// The provider's subject and all its aliases for the same user; the first one is the main subject.
    package let subjects: [String]
    /// Whether the account of an alias counts before that of the main subject: see `SignIn.aliasesDecide`.
    package let aliasesDecide: Bool

    package init(provider: String, subjects: [String], aliasesDecide: Bool = false) {
        self.provider = provider
        self.subjects = subjects
        self.aliasesDecide = aliasesDecide
    }
}

/// An identity of an account as shown to its owner.
package struct LinkedIdentity: Sendable, Equatable {
    package let provider: String
    package let linkedAt: UnixTime
    /// `nil` if no login with it has been recorded.
    package let lastLoginAt: UnixTime?

    package init(provider: String, linkedAt: UnixTime, lastLoginAt: UnixTime?) {
        self.provider = provider
        self.linkedAt = linkedAt
        self.lastLoginAt = lastLoginAt
    }
}

/// A user account.
package struct Account: Sendable, Equatable {
    /// `usr_` and a random string: the permanent subject that upstreams see.
    package let subject: String
    /// Claims stored from first logins, such as `name`.
    package let storedClaims: JSONObject
    /// Whether this call created the account.
    package let isNew: Bool
    /// Whether an operator has disabled the account: its credentials are rejected.
    package let isDisabled: Bool
    /// When the identity was revoked at its issuer, in milliseconds since 1970: older credentials are rejected.
    package let revokedAt: Int64?
    /// Until when a login takes its requested deletion back, in milliseconds since 1970; `nil` without one.
    package let deletionDue: Int64?
    /// Whether the account has, or once had, ``VersionedClaims``.
    package let hasClaims: Bool

    package init(
        subject: String, storedClaims: JSONObject, isNew: Bool, isDisabled: Bool = false, revokedAt: Int64? = nil,
        deletionDue: Int64? = nil, hasClaims: Bool = false
    ) {
        self.subject = subject
        self.storedClaims = storedClaims
        self.isNew = isNew
        self.isDisabled = isDisabled
        self.revokedAt = revokedAt
        self.deletionDue = deletionDue
        self.hasClaims = hasClaims
    }

    /// Whether its deletion was requested.
    package var isBeingDeleted: Bool { deletionDue != nil }

    /// Whether a credential was issued before the identity was revoked, or may have been.
    package func isRevoked(issuedAt: UnixTime) -> Bool {
        revokedAt.map { issuedAt.mayPrecede(milliseconds: $0) } ?? false
    }
}

/// What logins, sessions and jobs need of accounts; ``AccountStore`` says what each of these does.
package protocol AccountStoring: Sendable {
    var health: AccountHealth { get }
    func signIn(
        _ identity: AccountIdentity, keeping claims: JSONObject, setting rules: JSONObject, issuedAt: UnixTime?,
        at now: UnixTime
    ) async throws(AccountError) -> Account
    func find(_ identity: AccountIdentity) async throws(AccountError) -> Account?
    func account(_ subject: String) async throws(AccountError) -> AccountRecord?
    func link(
        _ identity: AccountIdentity, to subject: String, askedBySessionOf start: UnixTime?, keeping claims: JSONObject,
        at now: UnixTime
    ) async throws(AccountError)
    func unlink(provider: String, from subject: String) async throws(AccountError) -> AccountIdentity
    func identities(of subject: String) async throws(AccountError) -> [AccountIdentity]
    func linkedIdentities(of subject: String) async throws(AccountError) -> [LinkedIdentity]
    func noteLogin(
        of subject: String, with provider: String, email: EmailAddress?, at now: UnixTime
    ) async throws(AccountError)
    func claims(of subject: String) async throws(AccountError) -> VersionedClaims
    func profile(of subject: String) async throws(AccountError) -> JSONObject
    func changeProfile(of subject: String, by patch: ProfilePatch) async throws(AccountError) -> JSONObject
    func addUser(_ user: UserRecord, at now: UnixTime) async throws(AccountError)
}

extension UnixTime {
    /// Whether something of this second may have happened before an instant, in milliseconds since 1970.
    ///
    /// Issuers date tokens in whole seconds, and events in milliseconds. Within one second the order is
    /// unknown, and the token counts as the older one: a newer one is a second away.
    func mayPrecede(milliseconds instant: Int64) -> Bool { seconds <= instant / 1000 }
}
