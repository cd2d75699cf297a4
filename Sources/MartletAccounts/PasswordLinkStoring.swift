package import MartletCore
package import MartletJSON

/// What a one-time link that was mailed to an address is for; a link is good for nothing else.
package enum PasswordLinkPurpose: Int64, Sendable, CaseIterable {
    /// Verifies the address of a new user.
    case registration = 1
    /// Replaces a forgotten password.
    case reset = 2
}

/// A request for a mail with a link.
package struct PasswordLinkRequest: Sendable {
    /// The user that a link for a registration creates.
    package struct NewUser: Sendable {
        package let hash: String
        package let claims: JSONObject

        package init(hash: String, claims: JSONObject) {
            self.hash = hash
            self.claims = claims
        }
    }

    /// The data of the event `mail.requested`, depending on what the address is.
    package struct Mails: Sendable {
        /// For an active user's address.
        package let user: JSONObject
        /// For any other address; `nil` if it gets no mail.
        package let other: JSONObject?

        package init(user: JSONObject, other: JSONObject?) {
            self.user = user
            self.other = other
        }
    }

    package let purpose: PasswordLinkPurpose
    /// The provider's name in `providers:`.
    package let provider: String
    /// The canonical name of the user, which is the address.
    package let address: String
    /// SHA-256 of the token, in hexadecimal.
    package let digest: String
    /// For registrations only.
    package let newUser: NewUser?
    package let mails: Mails

    package init(
        _ purpose: PasswordLinkPurpose, provider: String, address: String, digest: String, newUser: NewUser? = nil,
        mails: Mails
    ) {
        self.purpose = purpose
        self.provider = provider
        self.address = address
        self.digest = digest
        self.newUser = newUser
        self.mails = mails
    }
}

/// The result of a request for a link.
package enum PasswordLinkReceipt: Sendable, Equatable {
    case accepted
    /// The address has received as many mails as it may; the next one is possible after this time.
    case throttled(retryAfter: Duration)
}

/// The limits of links.
package enum PasswordLinkLimits {
    /// How long a link is valid.
    package static let lifetime = Duration.seconds(30 * 60)
    /// The maximum number of mails to one address in `window`.
    package static let mailsPerAddress = 3
    package static let window = Duration.seconds(3600)
    /// The maximum number of stored links; beyond it the oldest are removed.
    package static let stored = 100_000
}

/// The one-time links of an account store.
///
/// Only digests of the tokens are stored. A request does the same for every address: it counts, stores a link and
/// records an event, of which what must not remain is removed in the same transaction.
package protocol PasswordLinkStoring: Sendable {
    /// Stores a link, and records the event `mail.requested` if a mail is due.
    func request(
        _ request: PasswordLinkRequest, at now: UnixTime
    ) async throws(AccountError) -> PasswordLinkReceipt
    /// The provider of a link that is valid; `nil` if there is none. The link stays valid.
    func linkProvider(
        of digest: String, for purpose: PasswordLinkPurpose, at now: UnixTime
    ) async throws(AccountError) -> String?
    /// Consumes a registration's link and adds its user.
    /// - Returns: the user's canonical name; `nil` if the link is not valid, or there is such a user already.
    func register(with digest: String, at now: UnixTime) async throws(AccountError) -> String?
    /// Consumes a reset's link and sets the user's hash, unless the password was changed since the link was requested.
    /// - Returns: the user's canonical name; `nil` if the link is not valid.
    func reset(with digest: String, to hash: String, at now: UnixTime) async throws(AccountError) -> String?
}
