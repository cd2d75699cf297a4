/// `auth:` of a route.
struct RouteAuthentication: KeyedBlock {
    private enum Mode: String, ConfigurationChoice { case required, optional }
    private enum BrowserHandling: String, ConfigurationChoice {
        case never
        var content: Bool { false }
    }
    private enum CredentialKind: String, ConfigurationChoice {
        case session, direct

        var option: CredentialKinds {
            switch self {
            case .session: .session
            case .direct: .direct
            }
        }
    }

    private var isNone = false
    private var providers: [String] = []
    private var mode = Mode.required
    private var kinds = CredentialKind.allCases
    private(set) var maximumAge: Duration?
    /// Whether the block has `credentials`.
    private(set) var statesCredentials = false
    private(set) var signsInBrowsers = true

    var credentials: CredentialKinds { CredentialKinds(kinds.map(\.option)) }
    /// Without `providers` the list is empty here; all providers are added once they are known.
    var value: RouteConfiguration.Authentication {
        isNone ? .none : mode == .required ? .required(providers: providers) : .optional(providers: providers)
    }

    static let keys: [ConfigurationKey<Self>] = [
        .key(
            "providers", \.providers, as: NonEmpty<String>.self,
            "Names in `providers` whose credentials are accepted; all of them if absent."),
        .key(
            "mode", \.mode,
            "`optional` also accepts requests without a credential, unless there is `authorize`; "
                + "an invalid credential is still rejected."),
        .key(
            "credentials", \.kinds, as: NonEmpty<CredentialKind>.self,
            "Accepted credentials: session tokens, or credentials of the provider itself."),
        .key(
            "max_age", \.maximumAge, in: Duration.positive,
            "The maximum age of the credential's proof; an older one gets 403."),
        .key(
            "browser", \.signsInBrowsers, as: BrowserHandling.self,
            "`never`: a page that a browser requests without a session is a 401, not a redirect to the sign-in page."),
        .check { $0.statesCredentials = $1.has("credentials") },
    ]

    /// Reads `auth:` in either form; `nil` if it is invalid, which is recorded.
    fileprivate static func read(_ reader: inout ConfigurationReader) -> RouteAuthentication? {
        guard let node = reader.node("auth") else { return RouteAuthentication() }
        guard case .scalar(let scalar) = node.content, !node.isNull else { return reader.block("auth") }
        if scalar.text == "none" {
            var none = RouteAuthentication()
            none.isNone = true
            return none
        }
        let mode = Mode(rawValue: scalar.text).map { " (did you mean '{ mode: \($0.rawValue) }'?)" }
        reader.error(
            .configBadValue, at: node.location,
            "auth: must be none or a block, not \(quoted(scalar.text))\(mode ?? Suggestion.phrase(for: scalar.text, among: ["none"]))"
        )
        return nil
    }
}

extension RouteConfiguration {
    mutating func readAuthentication(_ reader: inout ConfigurationReader) {
        guard let read = RouteAuthentication.read(&reader) else { return }
        (authentication, maximumAge) = (read.value, read.maximumAge)
        (credentials, statesCredentials) = (read.credentials, read.statesCredentials)
        signsInBrowsers = read.signsInBrowsers
    }
}

/// `auth.credentials`: sessions, credentials of the providers themselves, or both.
@frozen package struct CredentialKinds: OptionSet, Sendable, Hashable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package static let session = CredentialKinds(rawValue: 1)
    package static let direct = CredentialKinds(rawValue: 2)
}
