/// How long sessions and their tokens live: the `sessions:` block.
package struct SessionPolicy: Sendable, Equatable {
    /// Of an access token.
    package var accessTTL = Duration.seconds(15 * 60)
    /// Of the whole session, from the login on.
    package var refreshTTL = Duration.seconds(60 * 86_400)
    /// From the last use of either token.
    package var idleTimeout = Duration.seconds(30 * 86_400)
    /// How long a refresh token that was used still gets the same new pair.
    package var refreshReuseGrace = Duration.seconds(30)
    /// One more ends the oldest.
    package var maximumPerSubject = 10
    /// How long a loop may trust its own copy.
    package var cacheTTL = Duration.seconds(5)

    package init() {}
}
