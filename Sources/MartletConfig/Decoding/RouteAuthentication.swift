/// `auth:` of a route.
struct RouteAuthentication: ConfigurationDecodable {
    private enum Mode: String, CaseIterable, ConfigurationValue { case required, optional }
    private enum BrowserHandling: String, CaseIterable, ConfigurationValue { case never }
    private enum CredentialKind: String, CaseIterable, ConfigurationValue {
        case session, direct

        var option: CredentialKinds {
            switch self {
            case .session: .session
            case .direct: .direct
            }
        }
    }

    /// Without `providers` the list is empty here; all providers are added once they are known.
    let value: RouteConfiguration.Authentication
    let credentials: CredentialKinds
    let maximumAge: Duration?
    /// Whether the block has `credentials`.
    let statesCredentials: Bool
    let signsInBrowsers: Bool

    private init(_ value: RouteConfiguration.Authentication) {
        self.value = value
        credentials = [.session, .direct]
        maximumAge = nil
        statesCredentials = false
        signsInBrowsers = true
    }

    static var grammar: ConfigurationGrammar? {
        .init([
            .optional(
                "providers", .list(.text, nonEmpty: true),
                "Names in `providers` whose credentials are accepted; all of them if absent."),
            .optional(
                "mode", .choice(Mode.allCases.map(\.rawValue)), default: "required",
                "`optional` also accepts requests without a credential, unless there is `authorize`; "
                    + "an invalid credential is still rejected."),
            .optional(
                "credentials", .list(.choice(CredentialKind.allCases.map(\.rawValue)), nonEmpty: true),
                default: "[session, direct]",
                "Accepted credentials: session tokens, or credentials of the provider itself."),
            .optional("max_age", .duration, "The maximum age of the credential's proof; an older one gets 403."),
            .optional(
                "browser", .choice(BrowserHandling.allCases.map(\.rawValue)),
                "`never`: a page that a browser requests without a session is a 401, not a redirect to the sign-in page."
            ),
        ])
    }

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        let providers = reader.optional("providers", as: NonEmpty<Located<String>>.self)
        let mode = reader.optional("mode", default: Mode.required)
        let names = providers?.map(\.value) ?? []
        value = mode == .required ? .required(providers: names) : .optional(providers: names)
        maximumAge = reader.optional("max_age", in: Duration.positive)
        statesCredentials = reader.has("credentials")
        signsInBrowsers = reader.optional("browser", as: BrowserHandling.self) == nil
        let kinds = reader.optional("credentials", default: NonEmpty(CredentialKind.session, .direct))
        credentials = CredentialKinds(kinds.map(\.option))
    }

    /// Reads `auth:` in either form; `nil` if it is invalid, which is recorded.
    static func read(_ reader: inout ConfigurationReader) -> RouteAuthentication? {
        guard let node = reader.node("auth") else { return RouteAuthentication(.required(providers: [])) }
        guard case .scalar(let scalar) = node.content, !node.isNull else { return reader.block("auth") }
        if scalar.text == "none" { return RouteAuthentication(.none) }
        let mode = Mode(rawValue: scalar.text).map { " (did you mean '{ mode: \($0.rawValue) }'?)" }
        reader.error(
            .configBadValue, at: node.location,
            "auth: must be none or a block, not \(quoted(scalar.text))\(mode ?? Suggestion.phrase(for: scalar.text, among: ["none"]))"
        )
        return nil
    }
}
