package import MartletAudit
package import MartletCore
package import MartletIdentities
package import MartletJSON
package import MartletResponder

/// The gateway, as the endpoints of its admin listener and the health checks of its public listeners use it.
package protocol AdminSource: AnyObject, Sendable {
    /// Names that the admin listener accepts as `Host`, besides those of loopback and its own address.
    var adminHosts: [String] { get }
    /// Who may do what on the admin listener.
    var adminAccess: AdminAccess { get }
    var isDraining: Bool { get }
    /// Whether an event loop stands still.
    var isStalled: Bool { get }
    var clock: Clock { get }
    /// Accepts reload requests; `nil` if the configuration does not come from a file.
    var reloadQueue: ReloadQueue? { get }
    /// Takes changes by operators; `nil` without `audit:`.
    var audit: (any AuditRecording)? { get }
    /// The claims of accounts; `nil` without `accounts:`.
    var operatorClaims: OperatorClaims? { get }
    /// The sessions of all subjects.
    var operatorSessions: OperatorSessions { get }
    /// Subjects with accounts; `nil` without `accounts:`.
    var operatorAccounts: OperatorAccounts? { get }

    /// Takes an endpoint of an upstream out of use, or back.
    /// - Parameter endpoint: its URL, as it stands in the configuration.
    func drain(_ endpoint: String, of upstream: String, isDrained: Bool) -> EndpointDraining

    /// What the running configuration says.
    var configurationFacts: ConfigurationFacts { get }

    /// Starts or stops streaming finished requests to a watcher.
    func watchRequests(_ watcher: (any RequestWatching)?)

    /// A subject as access lines name it, escaped or as its hash; `nil` if they name none.
    func loggedSubject(_ subject: String) -> String?

    /// Sets a log level instead of the configured one.
    /// - Parameter span: how long; `nil` until a reload with another `log.level`.
    func changeLogLevel(_ level: LogLevel, for span: Duration?)

    /// Explains a request; `nil` while too many others are being explained, or if that is not possible.
    func explanation(of question: ExplanationQuestion) async -> JSONObject?

    /// Fetches the keys of a provider's issuer now.
    func refreshKeys(of provider: String) async -> KeyRefresh

    /// The current counters of the loops that respond in time.
    /// - Parameter withEndpoints: whether the state of every endpoint is among them.
    func loopReports(withEndpoints: Bool) async -> [LoopReport]

    /// A snapshot for the pages.
    /// - Parameters:
    ///   - loops: the last reports of all loops.
    ///   - responding: how many of them are current.
    func adminReport(loops: [LoopReport], responding: Int) -> AdminReport
}
