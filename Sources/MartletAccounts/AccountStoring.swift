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
    /// Whether its deletion was requested, which a login takes back.
    package let isBeingDeleted: Bool
    /// Whether the account has, or once had, ``VersionedClaims``.
    package let hasClaims: Bool

    package init(
        subject: String, storedClaims: JSONObject, isNew: Bool, isDisabled: Bool = false, revokedAt: Int64? = nil,
        isBeingDeleted: Bool = false, hasClaims: Bool = false
    ) {
        self.subject = subject
        self.storedClaims = storedClaims
        self.isNew = isNew
        self.isDisabled = isDisabled
        self.revokedAt = revokedAt
        self.isBeingDeleted = isBeingDeleted
        self.hasClaims = hasClaims
    }

    /// Whether a credential was issued before the identity was revoked, or may have been.
    package func isRevoked(issuedAt: UnixTime) -> Bool {
        revokedAt.map { issuedAt.mayPrecede(milliseconds: $0) } ?? false
    }
}

/// An account store: SQLite or PostgreSQL, with the same semantics.
package protocol AccountStoring: UserRecordStoring {
    /// Opens the store and migrates its schema.
    ///
    /// If PostgreSQL is unreachable, connecting continues in the background; the caller may proceed without the store.
    /// - Throws: `unavailable`.
    func start() async throws(AccountError)
    /// Closes the store; pending calls fail.
    func shutdown() async
    /// The health of the store, for `/readyz` and metrics.
    var health: AccountHealth { get }

    /// Finds the account of an identity, or creates it.
    ///
    /// Concurrent calls create one account. New aliases of a known identity are bound to its account; an alias that is
    /// already bound to another account stays there. Claims are stored when first seen and never replaced.
    /// - Parameters:
    ///   - rules: claims that rules of the configuration give the account; an operator's win over them.
    ///   - issuedAt: when the credential was issued; `nil` if it is known to be new.
    /// - Throws: `outdated` if the identity has no account any more, and the credential may be older than that;
    ///   `unavailable`.
    func signIn(
        _ identity: AccountIdentity, keeping claims: JSONObject, setting rules: JSONObject, issuedAt: UnixTime?,
        at now: UnixTime
    ) async throws(AccountError) -> Account
    /// Finds the account of an identity; `nil` if there is none.
    func find(_ identity: AccountIdentity) async throws(AccountError) -> Account?
    /// Binds an identity to an account; idempotent.
    /// - Parameter start: when the session began that asks for it; `nil` if no session does.
    /// - Throws: `identityTaken`, `providerAlreadyLinked`, `notFound` if the account does not exist, `outdated` if the
    ///   account was reclaimed since the session began, `unavailable`.
    func link(
        _ identity: AccountIdentity, to subject: String, askedBySessionOf start: UnixTime?, keeping claims: JSONObject,
        at now: UnixTime
    ) async throws(AccountError)
    /// Unbinds an account's identity of one provider and returns it.
    /// - Throws: `notFound`, `lastIdentity`, `unavailable`.
    func unlink(provider: String, from subject: String) async throws(AccountError) -> AccountIdentity
    /// Lists an account's identities.
    func identities(of subject: String) async throws(AccountError) -> [AccountIdentity]
    /// Lists an account's identities with the times of linking and last login, oldest first; empty without such an
    /// account.
    func linkedIdentities(of subject: String) async throws(AccountError) -> [LinkedIdentity]
    /// Records a login with an account's identity of one provider; the latest time wins, in any order of calls.
    /// - Parameter email: the address that the login brings; another one than before is recorded as an event.
    func noteLogin(
        of subject: String, with provider: String, email: EmailAddress?, at now: UnixTime
    ) async throws(AccountError)

    /// The claims of an account and its identities; ``VersionedClaims/none`` without such an account.
    func claims(of subject: String) async throws(AccountError) -> VersionedClaims
    /// What a user says of themselves: the claims `name` and `locale`, each if there is one.
    func profile(of subject: String) async throws(AccountError) -> JSONObject
    /// Changes what a user says of themselves; claims of operators and rules win over it.
    ///
    /// Stored only: `ClaimPublisher` makes running gateways apply it.
    /// - Returns: the profile after the change.
    /// - Throws: `notFound`, also for an account that is deleted, `unavailable`.
    func changeProfile(of subject: String, by patch: ProfilePatch) async throws(AccountError) -> JSONObject

    // Password users.

    /// Adds a user.
    /// - Throws: `duplicateUser`, `unavailable`.
    func addUser(_ user: UserRecord, at now: UnixTime) async throws(AccountError)
    /// Sets a user's password hash unconditionally.
    /// - Throws: `notFound`, `unavailable`.
    func setHash(of key: String, to hash: String) async throws(AccountError)
    /// Records that an operator vouches for the address that is a user's name: a later proof takes nothing away.
    /// - Throws: `notFound`, `unavailable`.
    func setProved(_ key: String, at now: UnixTime) async throws(AccountError)
    /// Disables or enables a user.
    /// - Throws: `notFound`, `unavailable`.
    func setDisabled(_ key: String, _ isDisabled: Bool) async throws(AccountError)
    /// Lists users by canonical name.
    /// - Parameters:
    ///   - start: the canonical name behind which the list starts; empty for the first page.
    ///   - onlyDisabled: leaves out active users.
    ///   - limit: the maximum number of users of the page.
    func users(after start: String, onlyDisabled: Bool, limit: Int) async throws(AccountError) -> [UserRecord]
}

extension AccountStoring {
    /// Records a login without an address.
    package func noteLogin(
        of subject: String, with provider: String, at now: UnixTime
    ) async throws(AccountError) { try await noteLogin(of: subject, with: provider, email: nil, at: now) }

    /// The same for no session.
    package func link(
        _ identity: AccountIdentity, to subject: String, keeping claims: JSONObject, at now: UnixTime
    ) async throws(AccountError) {
        try await link(identity, to: subject, askedBySessionOf: nil, keeping: claims, at: now)
    }

    /// The same without rules, with a new credential.
    package func signIn(
        _ identity: AccountIdentity, keeping claims: JSONObject, at now: UnixTime
    ) async throws(AccountError) -> Account {
        try await signIn(identity, keeping: claims, setting: [:], issuedAt: nil, at: now)
    }

    /// The same with a new credential.
    package func signIn(
        _ identity: AccountIdentity, keeping claims: JSONObject, setting rules: JSONObject, at now: UnixTime
    ) async throws(AccountError) -> Account {
        try await signIn(identity, keeping: claims, setting: rules, issuedAt: nil, at: now)
    }

    /// The health of a store that cannot fail.
    package var health: AccountHealth { AccountHealth(state: .ready) }
}
