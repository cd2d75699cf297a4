internal import MartletConfig
internal import MartletCore
internal import MartletProvider

/// `web`: sign-in by redirect, with a Services ID.
struct WebBlock: ConfigurationDecodable {
    private static let maximumIDBytes = 255

    /// What the user is asked to share.
    enum Scope: String, CaseIterable, ConfigurationValue { case name, email }

    /// The Services ID.
    let clientID: Located<String>
    let responseMode: Located<RedirectFlow.ResponseMode>
    /// Each at most once.
    let scopes: [Scope]
    /// Whether codes are bound to a verifier (RFC 7636).
    let usesCodeChallenge: Located<Bool>

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        let here = reader.location
        let mode = reader.optional("response_mode", default: Located(RedirectFlow.ResponseMode.formPost, at: here))
        let scopes = reader.optional("scope", as: [Scope].self)
        usesCodeChallenge = reader.optional("pkce", default: Located(false, at: here))
        responseMode = mode
        self.scopes = Scope.allCases.filter { (scopes ?? (mode.value == .formPost ? Scope.allCases : [])).contains($0) }
        if mode.value == .query, scopes?.isEmpty == false, let node = reader.node("scope") {
            reader.error(
                .configBadValue, at: node.location,
                "scope: must be empty with 'response_mode: query': Apple sends what is asked for by form_post alone")
        }
        clientID = try reader.required("client_id")
        let isValid =
            (1...Self.maximumIDBytes).contains(clientID.value.utf8.count)
            && clientID.value.utf8.allSatisfy { (0x21...0x7E).contains($0) }
        if !isValid {
            throw ConfigurationError(
                .configBadValue, at: clientID.location,
                "client_id: must be a Services ID, 1 to \(Self.maximumIDBytes) visible ASCII characters")
        }
    }

    static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .required("client_id", .text, "The Services ID of the website; also one of `audiences`."),
            .optional(
                "response_mode", .choice(RedirectFlow.ResponseMode.allCases.map(\.rawValue)), default: "form_post",
                "How Apple's response comes back; `query` needs a key and an empty `scope`."),
            .optional(
                "scope", .list(.choice(Scope.allCases.map(\.rawValue)), nonEmpty: false), default: "[name, email]",
                "What the user is asked to share; with `query` the default is `[]`."),
            .optional(
                "pkce", .boolean, default: "false",
                "Whether codes are bound to the browser by a `code_challenge`, which Apple does not document; needs a key."
            ),
        ])
    }

    /// Checks what needs a key of the developer account.
    func checkKey(_ hasKey: Bool, into diagnostics: inout Diagnostics) {
        guard !hasKey else { return }
        if responseMode.value == .query {
            diagnostics.error(
                .configMissingKey, at: responseMode.location,
                "web.response_mode: query needs a key: team_id, key_id and private_key_file; a code alone proves nothing"
            )
        }
        if usesCodeChallenge.value {
            diagnostics.error(
                .configMissingKey, at: usesCodeChallenge.location,
                "web.pkce: needs a key: team_id, key_id and private_key_file; Apple checks it when a code is exchanged")
        }
    }
}
