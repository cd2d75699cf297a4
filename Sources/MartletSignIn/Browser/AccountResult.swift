internal import MartletPages
internal import MartletProvider

/// The result of an action on the account's page, which its redirect back to the page says.
///
/// It is only shown: whoever made up a link gets a wrong sentence, and nothing else.
enum AccountResult: Equatable {
    case linked(String)
    case unlinked(String)
    case linkCancelled(String)
    case identityTaken(String)
    case alreadyLinked(String)
    case sessionEnded, passwordChanged

    private var parts: (name: String, provider: String?) {
        switch self {
        case .linked(let provider): ("linked", provider)
        case .unlinked(let provider): ("unlinked", provider)
        case .linkCancelled(let provider): ("link_cancelled", provider)
        case .identityTaken(let provider): ("identity_taken", provider)
        case .alreadyLinked(let provider): ("already_linked", provider)
        case .sessionEnded: ("session_ended", nil)
        case .passwordChanged: ("password_changed", nil)
        }
    }

    /// The path of the page, with this result.
    /// - Parameter proof: of a link that this session has just made.
    func location(_ path: String, proof: String? = nil) -> String {
        PageURL.local(path, [("result", parts.name), ("provider", parts.provider), ("proof", proof)])
    }

    /// The result that a query says; `nil` without one, or of a provider that is not there.
    init?(_ query: SignInForm) {
        let provider = (try? query.text("provider")) ?? ""
        let all: [AccountResult] = [
            .linked(provider), .unlinked(provider), .linkCancelled(provider), .identityTaken(provider),
            .alreadyLinked(provider), .sessionEnded, .passwordChanged,
        ]
        guard let name = try? query.text("result"), let result = all.first(where: { $0.parts.name == name }) else {
            return nil
        }
        self = result
    }

    /// What the page says.
    /// - Parameter kind: how a provider is shown; `nil` for a name that is not configured.
    func notice(_ kind: (String) -> ProviderButton.Kind?) -> AccountNotice? {
        switch self {
        case .linked(let provider): kind(provider).map(AccountNotice.linked)
        case .unlinked(let provider): kind(provider).map(AccountNotice.unlinked)
        case .linkCancelled(let provider): kind(provider).map(AccountNotice.linkCancelled)
        case .identityTaken(let provider): kind(provider).map(AccountNotice.identityTaken)
        case .alreadyLinked(let provider): kind(provider).map(AccountNotice.alreadyLinked)
        case .sessionEnded: .sessionEnded
        case .passwordChanged: .passwordChanged
        }
    }
}
