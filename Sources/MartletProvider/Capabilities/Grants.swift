public import MartletConfig
public import MartletCore
public import MartletJSON

/// What an issuer granted with a login, such as a refresh token: it shows later whether the user still consents, and
/// revokes the consent.
public struct ProviderGrant: Sendable {
    /// The client id that it was granted to.
    public let client: String
    /// The grant itself; the core stores it encrypted.
    public let token: Secret

    public init(client: String, token: Secret) {
        self.client = client
        self.token = token
    }
}

/// How often a provider's grants are checked.
public struct CheckSchedule: Sendable, Hashable {
    /// The minimum time between two checks of one identity.
    public let every: Duration
    /// The range over which the first checks of identities are spread.
    public let spread: Duration
    /// The maximum rate of checks, over all instances.
    public let rate: RequestRate

    public init(every: Duration, spread: Duration, rate: RequestRate) {
        self.every = every
        self.spread = spread
        self.rate = rate
    }
}

/// A provider that can ask its issuer whether a grant is still valid.
public protocol Refreshing: Provider {
    /// When grants are checked; `nil` if they are not.
    var checkSchedule: CheckSchedule? { get }

    /// Asks the issuer; suspends, but must not block a thread.
    /// - Parameters:
    ///   - subject: the provider's identifier of the user.
    ///   - deadline: the instant after which a result is of no use.
    /// - Throws: `unavailable` if the issuer's response proves nothing, `throttled` if it asks for fewer checks.
    func check(
        _ grant: ProviderGrant, of subject: String, until deadline: MonotonicTime
    ) async throws(AuthenticationError) -> GrantState
}

/// What an issuer says of a grant.
public enum GrantState: Sendable, Hashable {
    case valid
    /// The user has withdrawn the consent.
    case revoked
}

/// A provider that can revoke what was granted, as the deletion of an account requires.
public protocol Revoking: Provider {
    /// Revokes a grant. Idempotent; suspends, but must not block a thread.
    /// - Throws: `unavailable` or `throttled` if it has to be attempted again, `rejected` if no attempt can succeed.
    func revoke(_ grant: ProviderGrant, until deadline: MonotonicTime) async throws(AuthenticationError)
}

/// A provider whose issuer sends notifications about users: `POST /auth/{provider}/notifications`.
public protocol Notifying: Provider {
    /// Whether notifications are accepted; the endpoint does not exist otherwise.
    var acceptsNotifications: Bool { get }

    /// Verifies a notification. It must change nothing: the core applies it.
    /// - Throws: `rejected` or `malformed` for anything that the issuer did not send, `unavailable` if it could not be
    ///   verified.
    func readNotification(
        _ form: SignInForm, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> ProviderNotification
}

/// A verified notification of an issuer about one user.
public struct ProviderNotification: Sendable, Equatable {
    /// What happened to the identity.
    public enum Change: Sendable, Equatable {
        /// The user has withdrawn the consent; another login may give it again.
        case consentRevoked
        /// The user's account at the issuer is gone for good.
        case accountDeleted
        /// Claims that concern live sessions, too.
        case claims(JSONObject)
        /// Nothing that concerns the gateway; it is recorded only.
        case none
    }

    /// Equal for a repeated notification only; at most 255 bytes.
    public let id: String
    /// The issuer's name of the event, for logs.
    public let type: String
    /// The provider's identifier of the user.
    public let subject: String
    /// When it happened, in milliseconds since 1970.
    public let time: Int64
    public let change: Change

    public init(id: String, type: String, subject: String, time: Int64, change: Change) {
        self.id = id
        self.type = type
        self.subject = subject
        self.time = time
        self.change = change
    }
}
