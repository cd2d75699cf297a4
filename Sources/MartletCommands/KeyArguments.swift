internal import MartletAccounts
internal import MartletConfig
internal import MartletJSON
internal import MartletProvider

/// The words and options of `martlet key`.
struct KeyArguments: Sendable {
    /// A new key; when it expires is counted from its creation.
    struct Creation: Sendable {
        let subject: String
        let isAccount: Bool
        let claims: JSONObject
        let scopes: [String]
        /// `nil` if it does not expire.
        let lifetime: Duration?
    }

    enum Action: Sendable {
        case create(Creation)
        case list(after: String, limit: Int?)
        case revoke(String)
        case rotate(String, grace: Duration)
    }

    let word: String
    let action: Action

    init(_ options: Options) throws(Options.UsageError) {
        let ids = options.words.dropFirst()
        word = options.words.first ?? ""
        switch word {
        case "create": action = .create(try Self.creation(options))
        case "list": action = .list(after: options["after"] ?? "", limit: try options.limit(of: "keys"))
        case "revoke": action = .revoke(ids.first ?? "")
        default: action = .rotate(ids.first ?? "", grace: try Self.grace(options["grace"]))
        }
    }

    private static func creation(_ options: Options) throws(Options.UsageError) -> Creation {
        guard let subject = options["subject"], APIKeyRules.isSubject(subject) else {
            throw Options.UsageError(
                message:
                    "--subject must have up to \(APIKeyRules.maximumSubjectBytes) bytes, no control characters, and no "
                    + "space at either end")
        }
        var lifetime: Duration?
        if let text = options["expires"] {
            guard let duration = Duration(configurationText: text), duration >= .seconds(1) else {
                throw Options.UsageError(message: "--expires requires a duration such as 12h or 90d, up to 3650d")
            }
            lifetime = duration
        }
        return Creation(
            subject: subject, isAccount: options.has("account"), claims: try claims(options.all("claims")),
            scopes: try scopes(options.all("scope")), lifetime: lifetime)
    }

    private static func claims(_ arguments: [String]) throws(Options.UsageError) -> JSONObject {
        do throws(ClaimArgument.ParseError) {
            let patch = try ClaimArgument.patch(arguments)
            for name in patch.names where APIKeyRules.ownClaims.contains(name) {
                throw ClaimArgument.ParseError(message: "claim '\(name)' is set by the gateway")
            }
            guard patch.names.count <= ClaimRules.maximumCount,
                JSON.write(patch.changes).count <= ClaimRules.maximumBytes,
                !patch.changes.members.contains(where: { $0.value == .null })
            else {
                throw ClaimArgument.ParseError(
                    message:
                        "a key has up to \(ClaimRules.maximumCount) claims of \(ClaimRules.maximumBytes) bytes in all")
            }
            return patch.changes
        } catch {
            throw Options.UsageError(message: "--claims: \(error.message)")
        }
    }

    private static func scopes(_ arguments: [String]) throws(Options.UsageError) -> [String] {
        var scopes: [String] = []
        for argument in arguments {
            for scope in argument.split(separator: ",", omittingEmptySubsequences: false).map(String.init) {
                guard APIKeyRules.isScope(scope) else {
                    throw Options.UsageError(
                        message: "--scope requires scopes of printable ASCII characters, separated by commas")
                }
                if !scopes.contains(scope) { scopes.append(scope) }
            }
        }
        guard scopes.count <= APIKeyRules.maximumScopes else {
            throw Options.UsageError(message: "a key has up to \(APIKeyRules.maximumScopes) scopes")
        }
        return scopes
    }

    private static func grace(_ text: String?) throws(Options.UsageError) -> Duration {
        guard let text else { return .zero }
        guard let duration = Duration(configurationText: text) else {
            throw Options.UsageError(message: "--grace requires a duration such as 0s, 10m or 1d")
        }
        return duration
    }
}
