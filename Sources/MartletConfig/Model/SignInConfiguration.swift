package import MartletCore
package import MartletJSON

/// `accounts:` — the account store.
@frozen package struct AccountsConfiguration: Sendable {
    /// `sqlite:PATH` (the path resolved against the configuration file) or `postgresql://…`, as text.
    package var url: Located<String>
    /// The keys that encrypt grants, in base64, as text; the last one seals. MartletIdentities decodes them.
    package var keys: [Located<Secret>] = []
    package var pool = 8
    package var statementTimeout = Duration.seconds(2)
    package var deletion = DeletionConfiguration()
    package var claimsFrom: [AccountClaimSource] = []
    package var bootstrap: [AccountBootstrap] = []
}

/// `accounts.deletion:` — how accounts are deleted.
@frozen package struct DeletionConfiguration: Sendable, Equatable {
    package var grace = Duration.zero
    package var anonymizes = true
    package var maximumRevocationAge = Duration.seconds(7 * 86_400)

    package init() {}
}

/// One entry of `accounts.claims_from`.
@frozen package struct AccountClaimSource: Sendable {
    package var provider = Located("", at: .none)
    package var claim = Located(ClaimPath(""), at: .none)
    /// The name of the account's claim.
    package var name = Located("", at: .none)
}

/// One entry of `accounts.bootstrap`.
@frozen package struct AccountBootstrap: Sendable {
    package var provider = Located("", at: .none)
    package var providerSubject = Located("", at: .none)
    package var claims: [(name: Located<String>, value: JSONValue)] = []
}

/// One entry of `webhooks:`.
@frozen package struct WebhookConfiguration: Sendable {
    package var name: Located<String>
    package var url: Located<URLText>
    /// The signing key in base64, as text; MartletEvents decodes it.
    package var secret: Located<Secret>
    /// Patterns of event types, as text; MartletEvents parses them.
    package var events: NonEmpty<Located<String>>
    package var timeout = Duration.seconds(5)
    package var maximumAge = Duration.seconds(7 * 86_400)
}

/// `outbox:` — the bounds of the queue of events.
@frozen package struct OutboxConfiguration: Sendable, Equatable {
    package var maximumRows = 1_000_000

    package init() {}
}

/// `sessions:` — session lifetimes, and the location of the sign-in endpoints.
@frozen package struct SessionsConfiguration: Sendable, Equatable {
    package var accessTTL = Duration.seconds(15 * 60)
    package var refreshTTL = Duration.seconds(60 * 86_400)
    package var idleTimeout = Duration.seconds(30 * 86_400)
    package var refreshReuseGrace = Duration.seconds(30)
    package var maximumPerSubject = 10
    package var cacheTTL = Duration.seconds(5)
    package var dpop = SessionBinding.off
    /// Normalized, without a final slash.
    package var path = "/auth"
    /// Lower case, as a route's; empty is any host.
    package var hosts: [String] = []
    /// Origins of web pages that may call the endpoints; if empty, preflights are not handled.
    package var corsOrigins: [String] = []
    /// The names of the rate limits of logins.
    package var loginLimits: [Located<String>] = []

    package init() {}
}

/// `sessions.dpop:` — whether sessions are bound to a key of the client (RFC 9449).
@frozen package enum SessionBinding: String, ConfigurationChoice {
    /// No new session is bound; one that is stays so.
    case off
    /// A session is bound if its client proves a key.
    case optional
    /// A session without a key is not created, and ends with its access token; those of browsers have none.
    case required
}

/// `assertion:` — the signed assertion for upstreams.
@frozen package struct AssertionConfiguration: Sendable {
    package var header: Located<String>
    package var issuer: String
    package var ttl = Duration.seconds(60)
    package var audience: String?
    package var key: Located<Secret>
    /// Previous or next keys, private or public, PEM: published but not used for signing.
    package var otherKeys: [Located<Secret>] = []
}

/// `well_known:` — documents under `/.well-known/` for app platforms.
@frozen package struct WellKnownConfiguration: Sendable, Equatable {
    /// `<prefix>.<bundle id>` of the apps that share this host's passwords; empty serves no document.
    package var webCredentialApps: [String] = []
    /// Where passwords are changed; `nil` serves no redirect.
    package var changePasswordURL: String?

    package init() {}
}
