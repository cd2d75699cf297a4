public import MartletConfig
public import MartletCore

/// The `kind:` of a provider in the configuration, such as `apple`.
@frozen
public struct ProviderKind: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    public let rawValue: String

    public init(rawValue: String) { self.rawValue = rawValue }
    public init(stringLiteral value: StaticString) { rawValue = "\(value)" }

    public var description: String { rawValue }
}

/// An identity provider; every plugin is one. Its capabilities are the protocols below.
///
/// Life cycle: the configuration block is decoded strictly, ``validate(_:into:)`` checks across fields,
/// ``init(_:context:)`` builds without I/O (`martlet check` stops here), then ``Running`` providers are started, used,
/// and shut down after the last request.
public protocol Provider: Sendable {
    associatedtype Configuration: ConfigurationDecodable

    /// The `kind:` that selects this provider.
    static var kind: ProviderKind { get }

    /// Checks across fields. Pure: no I/O, no state.
    static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics)

    /// What the gateway has to have for a provider of this configuration. Pure.
    static func facts(_ configuration: Configuration) -> ProviderFacts

    /// Builds the provider. No I/O.
    init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError)
}

extension Provider {
    /// Nothing.
    public static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics) {}

    /// None.
    public static func facts(_ configuration: Configuration) -> ProviderFacts { ProviderFacts() }
}

/// What is known of a provider before it is built, because the gateway has to have something for it; none by default.
///
/// Positions are those of the keys of its block that turn something on, for errors; `nil` if it is off.
public struct ProviderFacts: Sendable {
    /// Returns grants with logins, which are stored encrypted: `accounts.key_file`.
    public var grants: SourceLocation?
    /// Accepts notifications, which concern accounts: `accounts`.
    public var notifications: SourceLocation?
    /// Recognizes users of another team, who keep their accounts: `accounts`.
    public var transfers: SourceLocation?
    /// Signs browsers in by redirect: `browser`.
    public var redirects: SourceLocation?
    /// Whether its users are in the account store, so that they can be created: `browser.register` needs such a one.
    public var storesUsers = false

    public init() {}
}

/// A provider that verifies the credential of a request.
public protocol Authenticating: Provider {
    /// Where its credentials are found; the core extracts them, the provider verifies them.
    var accepts: [CredentialSource] { get }

    /// Authenticates the client that presents the credential; may suspend, but must not block a thread.
    /// - Throws: `AuthenticationError`: `rejected` for an invalid credential, `unavailable` if it could not be
    ///   verified.
    func authenticate(
        _ credential: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> Identity
}

/// A provider that can usually verify without waiting, because the keys are cached.
public protocol LocallyVerifying: Authenticating {
    /// Whether ``verify(_:in:)`` never takes longer than verifying the signature of one token, and acquires no lock
    /// that is held for long.
    ///
    /// If so, an event loop may call it directly, where it delays every other connection of the loop. By default it is
    /// called on separate threads only.
    var isQuick: Bool { get }

    /// Verifies immediately, or returns `undecided` if only ``Authenticating/authenticate(_:in:)`` can.
    func verify(
        _ credential: Credential, in context: AuthenticationContext
    ) throws(AuthenticationError) -> LocalVerification
}

extension LocallyVerifying {
    public var isQuick: Bool { false }
}

/// The result of verifying without waiting.
public enum LocalVerification: Sendable {
    case authenticated(Identity)
    case undecided
}

/// A provider that rejects whatever some clients present for a while, such as those of a throttled network.
///
/// An event loop rejects these requests itself, so that a flood from such a client takes no thread and no place in a
/// queue from others.
public protocol Throttling: Authenticating {
    /// The rejection of any credential from this client; `nil` if its credential has to be verified.
    ///
    /// Called on an event loop: it must return immediately, and acquire no lock that is held for long.
    func rejection(of client: ClientNetwork) -> AuthenticationError?
}

/// A provider with background work, such as refreshing keys or maintaining a connection.
public protocol Running: Provider {
    /// Starts the background work; returns when the provider can be used, whether or not its first fetch succeeded.
    func start() async
    /// Stops the background work; also called after an aborted start.
    func shutdown() async
}

/// A provider that can report each check of a credential, for `martlet explain`.
public protocol Explaining: Authenticating {
    /// Every check in order, up to and including the first that fails.
    func explain(_ credential: Credential, in context: AuthenticationContext) async -> [CheckOutcome]
}

/// The result of one check, for explanations.
public struct CheckOutcome: Sendable {
    /// The name of the check, such as `signature` or `audience`.
    public let check: String
    /// The error code; `nil` if the check passed.
    public let failure: ErrorCode?
    /// The checked value, if it may be shown.
    public let detail: String

    public init(check: String, failure: ErrorCode?, detail: String) {
        self.check = check
        self.failure = failure
        self.detail = detail
    }
}

/// A provider that reports the health of an external dependency, for `/readyz` and `/metrics`.
public protocol Reporting: Provider {
    /// The current health.
    var health: ProviderHealth { get }
}

/// The health of a provider's external dependency.
public struct ProviderHealth: Sendable {
    /// Whether the provider can authenticate.
    public enum State: String, Sendable { case ready, degraded, unavailable }

    /// One metric for `/metrics`: `martlet_provider_<name>{provider="…"}`.
    public struct Gauge: Sendable {
        /// The metric type.
        public enum Kind: Sendable { case gauge, counter }

        /// In snake case, with the unit as suffix: `jwks_age_seconds`.
        public let name: String
        public let help: String
        public let kind: Kind
        public let value: Double

        public init(name: String, help: String, kind: Kind, value: Double) {
            self.name = name
            self.help = help
            self.kind = kind
            self.value = value
        }
    }

    public let state: State
    /// The dependency and its state, for operators.
    public let detail: String
    public let gauges: [Gauge]

    public init(state: State, detail: String, gauges: [Gauge]) {
        self.state = state
        self.detail = detail
        self.gauges = gauges
    }
}

/// A provider that can check whether the services it depends on are reachable and accept its credentials, for
/// `martlet check --online`.
public protocol OnlineChecking: Provider {
    /// Queries each service once, without side effects: it must not consume codes, tokens or quotas that users need.
    ///
    /// - Parameter deadline: the instant after which a result is of no use.
    /// - Returns: the checks, in order; the detail states what a check does not prove.
    func checkOnline(until deadline: MonotonicTime) async -> [CheckOutcome]
}
