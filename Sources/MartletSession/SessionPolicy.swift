/// Lifetimes of sessions and their tokens: the `sessions:` block, which has the defaults.
package struct SessionPolicy: Sendable, Equatable {
    /// The lifetime of an access token; a cookie token older than this is replaced.
    package var accessTTL: Duration
    /// The lifetime of the session, from the login on.
    package var refreshTTL: Duration
    /// A session ends this long after the last use of either token.
    package var idleTimeout: Duration
    /// How long a used refresh token still returns the same new pair, and how long a replaced cookie token is accepted
    /// after the first use of the next one.
    package var refreshReuseGrace: Duration
    /// The maximum number of sessions of a subject; a further login ends the oldest.
    package var maximumPerSubject: Int
    /// How long an event loop may cache a verified session.
    package var cacheTTL: Duration

    package init(
        accessTTL: Duration, refreshTTL: Duration, idleTimeout: Duration, refreshReuseGrace: Duration,
        maximumPerSubject: Int, cacheTTL: Duration
    ) {
        (self.accessTTL, self.refreshTTL) = (accessTTL, refreshTTL)
        (self.idleTimeout, self.refreshReuseGrace) = (idleTimeout, refreshReuseGrace)
        (self.maximumPerSubject, self.cacheTTL) = (maximumPerSubject, cacheTTL)
    }
}
