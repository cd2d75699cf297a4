public import MartletConfig
public import MartletCore

/// A provider of password users who can register, and replace a forgotten password, without an operator.
///
/// The gateway stores the users and the links that are sent to them; the provider has the rules. An email address is
/// the name of such a user, by ``UserCreating/canonicalName(_:)``.
public protocol PasswordSelfServing: UserCreating {
    /// What its users may do by themselves.
    var selfService: PasswordSelfService { get }
    /// Checks a new password by the rules for passwords, and hashes it.
    /// - Parameter member: the member of the body that has the password, for errors.
    /// - Throws: `malformed` for a password that violates the rules, `unavailable` if it could not be hashed.
    func hashNewPassword(
        _ password: Secret, member: String, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> String
    /// Called after the password of a user was replaced: the failures of the old one no longer throttle the user.
    /// - Parameter key: the canonical name.
    func passwordWasReset(of key: String, in context: AuthenticationContext) async
    /// Whether a user has logged in from a network before; `false` if that is not known.
    /// - Parameter key: the canonical name.
    func hasLoggedIn(_ key: String, from network: ClientNetwork) async -> Bool
}

extension PasswordSelfServing {
    /// No network is known.
    public func hasLoggedIn(_ key: String, from network: ClientNetwork) async -> Bool { false }
}

/// What the users of a provider may do by themselves; nothing by default.
public struct PasswordSelfService: Sendable {
    /// How users register.
    public struct Registration: Sendable {
        /// Whether a user exists only after a link in a mail was used.
        public let verifiesAddress: Bool
        public let requiresName: Bool
        /// The page of the link; `nil` if mails contain the token alone.
        public let link: LinkTemplate?

        public init(verifiesAddress: Bool, requiresName: Bool, link: LinkTemplate?) {
            self.verifiesAddress = verifiesAddress
            self.requiresName = requiresName
            self.link = link
        }
    }

    /// How users replace a forgotten password.
    public struct Reset: Sendable {
        /// The page of the link; `nil` if mails contain the token alone.
        public let link: LinkTemplate?

        public init(link: LinkTemplate?) { self.link = link }
    }

    /// `nil`: users cannot register.
    public let registration: Registration?
    /// `nil`: users cannot replace a forgotten password.
    public let reset: Reset?
    /// The key of the configuration because of which mails have to be sent; `nil` if there is none.
    public let mailLocation: SourceLocation?

    /// Whether a name may be the address of a mailbox, to which mails are sent for the user.
    public var usesAddresses: Bool { registration != nil || reset != nil }

    public init(registration: Registration? = nil, reset: Reset? = nil, mailLocation: SourceLocation? = nil) {
        self.registration = registration
        self.reset = reset
        self.mailLocation = mailLocation
    }
}
