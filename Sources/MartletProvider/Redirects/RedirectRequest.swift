/// What a sign-in by redirect is begun for: a provider asks its site for it, as far as the site understands it.
///
/// What the site then says about the user is checked by the conditions of routes, not here.
public struct RedirectRequest: Sendable {
    /// How long ago the user may have authenticated at the site; `nil` for any time.
    public var maximumAge: Duration?
    /// The level of the authentication, as the claim `acr` names it; `nil` for any.
    public var level: String?
    /// Whether the user has to authenticate at the site, although it may have a session.
    public var confirms = false
    /// The arguments of the link that began it, such as `login_hint`: anyone can have made them.
    public var arguments: [String: String] = [:]

    public init() {}
}
