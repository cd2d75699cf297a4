internal import MartletCore
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
    /// Where a request comes from, as digests.
    package struct Origin: Sendable, Equatable {
        package let network: String
        /// What contains the network and its neighbors; `nil` for a network from which the user has logged in before.
        package let neighborhood: String?

        package init(network: String, neighborhood: String?) {
            self.network = network
            self.neighborhood = neighborhood
        }
    }

    /// The data of the event `mail.requested`, depending on what the address is.
    package struct Mails: Sendable {
        /// For an active user's address.
        package let user: JSONObject
        /// For one that was never proved to be the user's; `nil` if that makes no difference.
        package let unproved: JSONObject?
        /// For any other address; `nil` if it gets no mail.
        package let other: JSONObject?

        package init(user: JSONObject, unproved: JSONObject? = nil, other: JSONObject?) {
            self.user = user
            self.unproved = unproved
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
    /// The claims of the user that a registration creates; its password comes with the proof.
    package let claims: JSONObject
    package let mails: Mails
    package let origin: Origin

    package init(
        _ purpose: PasswordLinkPurpose, provider: String, address: String, digest: String, claims: JSONObject = [:],
        mails: Mails, from origin: Origin
    ) {
        self.purpose = purpose
        self.provider = provider
        self.address = address
        self.digest = digest
        self.claims = claims
        self.mails = mails
        self.origin = origin
    }
}

/// The result of a request for a link, which only logs tell.
package enum PasswordLinkReceipt: Sendable, Equatable {
    case accepted
    /// The address has received as many mails because of the network as it may.
    case withheld
}

/// The limits of links.
package enum PasswordLinkLimits {
    /// How long a link is valid.
    package static let lifetime = Duration.seconds(30 * 60)
    /// The maximum number of mails to one address that one network causes in `window`.
    package static let mails = perHour?.count ?? 0
    private static let perHour = SharedBound.mailsToAddress.rate
    /// The same for a network and its neighbors together: an IPv4 /24, an IPv6 /48.
    package static let mailsOfNeighborhood = 12
    package static let window = perHour?.window ?? .zero
    /// The time between two mails for one purpose to one address that one network causes.
    package static let pause = Duration.seconds(60)
    /// The maximum number of stored links; beyond it the oldest are removed.
    package static let stored = SharedBound.storedLinks.total
}

/// The proof that a user has the mailbox that is the user's name: a link that was mailed there was used.
///
/// Only an account store makes one, and together with it everything that follows from it.
package struct AddressProof: Sendable {
    /// An account of the user.
    package struct Owned: Sendable {
        package let subject: String
        /// The providers of the identities that were there before the first proof, and are gone.
        package let identities: [String]
        /// The ids of the API keys that were there before it, and are revoked.
        package let keys: [String]
    }

    /// The canonical name of the user.
    package let user: String
    /// Whether it is the first one of the address.
    package let isFirst: Bool
    package let accounts: [Owned]
    /// What is left to do: the sessions of the accounts end.
    package let jobs: [AccountJob]
}
