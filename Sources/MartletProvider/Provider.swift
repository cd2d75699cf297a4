public import MartletConfig
public import MartletCore

/// The `kind:` of a provider in the configuration, such as `apple`.
public struct ProviderKind: RawRepresentable, Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    public let rawValue: String

    public init(rawValue: String) { self.rawValue = rawValue }
    public init(stringLiteral value: StaticString) { rawValue = "\(value)" }

    public var description: String { rawValue }
}

/// A way to prove identity.
///
/// What every plugin is; what it can do, it says by the capabilities below.
///
/// Life: the configuration block is decoded strictly, ``validate(_:into:)`` looks across fields, ``init(_:context:)`` builds
/// without I/O (`martlet check` stops here), then ``Running`` providers are started, used, and shut down after the last request.
public protocol Provider: Sendable {
    associatedtype Configuration: ConfigurationDecodable

    /// The `kind:` that selects this provider.
    static var kind: ProviderKind { get }

    /// Checks what no single field can show. Pure: no I/O, no state.
    static func validate(_ configuration: Configuration, into diagnostics: inout Diagnostics)

    /// Builds the provider. No I/O.
    init(_ configuration: Configuration, context: ProviderContext) throws(ConfigurationError)
}

/// A provider that judges a credential that came with the request itself.
public protocol Authenticating: Provider {
    /// Where its credentials are found; the core extracts, the provider judges.
    var accepts: [CredentialSource] { get }

    /// Proves who presents the credential; may wait, but never block a thread.
    /// - Throws: `AuthenticationError`, `rejected` for a bad credential, `unavailable` where that could not be decided.
    func authenticate(
        _ credential: Credential, in context: AuthenticationContext
    ) async throws(AuthenticationError) -> Identity
}

/// A provider that can usually decide without waiting: the keys are at hand.
public protocol LocallyVerifying: Authenticating {
    /// Whether ``verify(_:in:)`` never takes longer than checking the signature of one token, and takes no lock that is held
    /// for long.
    ///
    /// Then an event loop may call it itself, where it holds up every other connection of the loop. Without a word from the
    /// provider it is called on threads of its own only.
    var isQuick: Bool { get }

    /// Decides at once, or says that only ``Authenticating/authenticate(_:in:)`` can.
    func verify(
        _ credential: Credential, in context: AuthenticationContext
    ) throws(AuthenticationError) -> LocalVerdict
}

extension LocallyVerifying {
    public var isQuick: Bool { false }
}

/// What a provider could decide without waiting.
public enum LocalVerdict: Sendable {
    case authenticated(Identity)
    case undecided
}

/// A provider that does something in the background: refreshes keys, keeps a connection.
public protocol Running: Provider {
    /// Begins the background work; returns when the provider can be asked, whether or not its first fetch went well.
    func start() async
    /// Ends it; also called after a start that was cut short.
    func shutdown() async
}

/// A provider that can tell, check by check, how it judges a credential; for `martlet explain`.
public protocol Explaining: Authenticating {
    /// Every check in order, up to and with the first that fails.
    func explain(_ credential: Credential, in context: AuthenticationContext) async -> [CheckVerdict]
}

/// One line of an explanation.
public struct CheckVerdict: Sendable {
    /// What is checked, such as `signature` or `audience`.
    public let check: String
    /// `nil` when it held, else the reason.
    public let failure: ErrorCode?
    /// What was seen, where that may be shown.
    public let detail: String

    public init(check: String, failure: ErrorCode?, detail: String) {
        self.check = check
        self.failure = failure
        self.detail = detail
    }
}

/// A provider that depends on something outside and can tell how that is; for `/readyz` and `/metrics`.
public protocol Reporting: Provider {
    var health: ProviderHealth { get }
}

/// How a provider's outside dependency is.
public struct ProviderHealth: Sendable {
    /// Whether the provider can do its work.
    public enum State: String, Sendable { case ready, degraded, unavailable }

    /// One number for `/metrics`: `martlet_provider_<name>{provider="…"}`.
    public struct Gauge: Sendable {
        /// How the number moves.
        public enum Kind: Sendable { case gauge, counter }

        /// Snake case with its unit last: `jwks_age_seconds`.
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
    /// What it depends on and how that is, for operators.
    public let detail: String
    public let gauges: [Gauge]

    public init(state: State, detail: String, gauges: [Gauge]) {
        self.state = state
        self.detail = detail
        self.gauges = gauges
    }
}
