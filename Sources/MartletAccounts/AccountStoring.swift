package import MartletCore
package import MartletJSON
package import MartletProvider

/// Why the account store did not do what it was asked to.
package struct AccountError: Error, Sendable, CustomStringConvertible {
    /// What kind of answer it asks for.
    package enum Kind: Sendable, Equatable {
        /// The store cannot tell: 503.
        case unavailable
        /// The identity is bound to another account: 409.
        case identityTaken
        /// The account has another identity of that provider: 409.
        case providerAlreadyLinked
        /// The account would be left without any identity: 409.
        case lastIdentity
        /// There is no such account, identity or user: 404.
        case notFound
        /// A user of that canonical name exists already.
        case duplicateUser
    }

    package let code: ErrorCode
    package let kind: Kind
    /// For operators; holds no personal data and no secret.
    package let message: String

    package init(_ code: ErrorCode, _ kind: Kind, _ message: String) {
        self.code = code
        self.kind = kind
        self.message = message
    }

    package var description: String { "\(message) [\(code)]" }
}

/// An identity as accounts know it: filed under the provider's name in `providers:`.
package struct AccountIdentity: Sendable, Equatable {
    package let provider: String
    /// The provider's subject and every alias it knows the same person by; the first is the one to show.
    package let subjects: [String]

    package init(provider: String, subjects: [String]) {
        self.provider = provider
        self.subjects = subjects
    }
}

/// An identity of an account, as its owner is shown it.
package struct LinkedIdentity: Sendable, Equatable {
    package let provider: String
    package let linkedAt: UnixTime
    /// `nil` where nobody has logged in with it, or not since such things are noted.
    package let lastLoginAt: UnixTime?

    package init(provider: String, linkedAt: UnixTime, lastLoginAt: UnixTime?) {
        self.provider = provider
        self.linkedAt = linkedAt
        self.lastLoginAt = lastLoginAt
    }
}

/// A person.
package struct Account: Sendable, Equatable {
    /// `usr_` and randomness: what upstreams know the person by, for ever.
    package let subject: String
    /// What was kept from first logins, such as `name`.
    package let keptClaims: JSONObject
    /// Whether this very call made it.
    package let isNew: Bool

    package init(subject: String, keptClaims: JSONObject, isNew: Bool) {
        self.subject = subject
        self.keptClaims = keptClaims
        self.isNew = isNew
    }
}

/// Where accounts live: SQLite or PostgreSQL, with the same rules.
package protocol AccountStoring: UserRecordStoring {
    /// Opens the store and brings its schema up to date.
    ///
    /// A PostgreSQL that cannot be reached is looked for on: the caller may go on without, and finds it back later.
    /// - Throws: `unavailable`, with the code that says why.
    func start() async throws(AccountError)
    /// Lets go of everything; calls that wait are answered.
    func shutdown() async
    /// How the store stands: for `/readyz` and metrics.
    var health: AccountHealth { get }

    /// The account of an identity, made where there is none.
    ///
    /// However many ask at once, one account comes of it. New aliases of a known identity are bound to its account;
    /// an alias that is bound to another account already stays there. Claims are kept at first sight and never replaced.
    func signIn(
        _ identity: AccountIdentity, keeping claims: JSONObject, at now: UnixTime
    ) async throws(AccountError)
        -> Account
    /// The account of an identity; `nil` if there is none.
    func find(_ identity: AccountIdentity) async throws(AccountError) -> Account?
    /// Binds an identity to an account; again is fine.
    /// - Throws: `identityTaken`, `providerAlreadyLinked`, `notFound` when the account is gone, `unavailable`.
    func link(
        _ identity: AccountIdentity, to subject: String, keeping claims: JSONObject, at now: UnixTime)
        async throws(AccountError)
    /// Unbinds an account's identity of one provider and tells what it was.
    /// - Throws: `notFound`, `lastIdentity`, `unavailable`.
    func unlink(provider: String, from subject: String) async throws(AccountError) -> AccountIdentity
    /// An account's identities.
    func identities(of subject: String) async throws(AccountError) -> [AccountIdentity]
    /// The same with when they were linked and last logged in with, the oldest first; none for an account that is gone.
    func linkedIdentities(of subject: String) async throws(AccountError) -> [LinkedIdentity]
    /// Notes a login with an account's identity of one provider; the last one counts, in whatever order they come.
    func noteLogin(of subject: String, with provider: String, at now: UnixTime) async throws(AccountError)

    // Password users.

    /// Adds a user.
    /// - Throws: `duplicateUser`, `unavailable`.
    func addUser(_ user: UserRecord, at now: UnixTime) async throws(AccountError)
    /// Sets a user's hash whatever it was; `notFound` without one.
    func setHash(of key: String, to hash: String) async throws(AccountError)
    /// Disables or enables a user; `notFound` without one.
    func setDisabled(_ key: String, _ isDisabled: Bool) async throws(AccountError)
    /// Every user, by canonical name.
    func users() async throws(AccountError) -> [UserRecord]
}

extension AccountStoring {
    /// What a store says that cannot fail.
    package var health: AccountHealth { AccountHealth(state: .ready) }
}
