/// Lifetimes of sessions and their tokens: the `sessions:` block.
package struct SessionPolicy: Sendable, Equatable {
    /// The lifetime of an access token.
    package var accessTTL = Duration.seconds(15 * 60)
    /// The lifetime of the session, from the login on.
    package var refreshTTL = Duration.seconds(60 * 86_400)
    /// A session ends this long after the last use of either token.
    package var idleTimeout = Duration.seconds(30 * 86_400)
    /// How long a used refresh token still returns the same new pair.
    package var refreshReuseGrace = Duration.seconds(30)
    /// The maximum number of sessions of a subject; a further login ends the oldest.
    package var maximumPerSubject = 10
    /// How long an event loop may cache a verified session.
    package var cacheTTL = Duration.seconds(5)

    package init() {}
}
