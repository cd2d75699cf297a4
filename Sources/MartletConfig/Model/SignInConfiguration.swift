package import MartletCore

/// `accounts:` — the account store.
package struct AccountsConfiguration: Sendable {
    /// `sqlite:PATH` (the path resolved against the configuration file) or `postgresql://…`, as text.
    package var url: Located<String>
}

/// `sessions:` — session lifetimes, and the location of the sign-in endpoints.
package struct SessionsConfiguration: Sendable, Equatable {
    package var accessTTL = Duration.seconds(15 * 60)
    package var refreshTTL = Duration.seconds(60 * 86_400)
    package var idleTimeout = Duration.seconds(30 * 86_400)
    package var refreshReuseGrace = Duration.seconds(30)
    package var maximumPerSubject = 10
    package var cacheTTL = Duration.seconds(5)
    /// Normalized, without a final slash.
    package var path = "/auth"
    /// Lower case, as a route's; empty is any host.
    package var hosts: [String] = []
    /// Origins of web pages that may call the endpoints; if empty, preflights are not handled.
    package var corsOrigins: [String] = []

    package init() {}
}

/// `assertion:` — the signed assertion for upstreams.
package struct AssertionConfiguration: Sendable {
    package var header: Located<String>
    package var issuer: String
    package var ttl: Duration
    /// `nil`: the upstream's name.
    package var audience: String?
    /// A P-256 private key, PEM.
    package var key: Located<Secret>
    /// Previous or next keys, private or public, PEM: published but not used for signing.
    package var otherKeys: [Located<Secret>]
}

/// `well_known:` — documents under `/.well-known/` for app platforms.
package struct WellKnownConfiguration: Sendable, Equatable {
    /// `<prefix>.<bundle id>` of the apps that share this host's passwords; empty serves no document.
    package var webCredentialApps: [String] = []
    /// Where passwords are changed; `nil` serves no redirect.
    package var changePasswordURL: String?

    package init() {}
}
