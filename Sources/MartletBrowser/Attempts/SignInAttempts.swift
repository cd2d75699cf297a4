package import MartletCore
private import MartletCrypto

/// The sign-ins of one browser that wait for a provider.
///
/// Each is in a cookie of its own that only the gateway can read (``AttemptSeal``): nothing is stored for a browser that
/// never comes back, and pages that sign in at the same moment do not overwrite each other's.
package struct SignInAttempts: Sendable {
    /// Attempts at the same time; with another one the oldest goes.
    package static let maximumCount = 5
    /// What the cookies of all attempts may have together: they come with every request, whose head is limited.
    static let maximumBytes = 9 * 1024

    private var all: [(attempt: SignInAttempt, bytes: Int)] = []

    package init() {}

    package var isEmpty: Bool { all.isEmpty }

    /// The attempts, the oldest first.
    package var attempts: [SignInAttempt] {
        all.map(\.attempt).sorted { $0.created.seconds < $1.created.seconds }
    }

    /// Adds the attempt of a cookie.
    /// - Parameter bytes: the length of the cookie's value.
    package mutating func add(_ attempt: SignInAttempt, bytes: Int) { all.append((attempt, bytes)) }

    /// The attempts whose cookies are to be deleted because there is one more: those that are over, and the oldest of too
    /// many.
    /// - Parameter bytes: the length of the new one's value.
    package func superseded(byOneMoreOf bytes: Int, now: UnixTime) -> [SignInAttempt] {
        var kept = all.filter { $0.attempt.isCurrent(now) }.sorted {
            $0.attempt.created.seconds < $1.attempt.created.seconds
        }
        var gone = all.filter { !$0.attempt.isCurrent(now) }.map(\.attempt)
        while let oldest = kept.first,
            kept.count >= Self.maximumCount || kept.reduce(bytes, { $0 + $1.bytes }) > Self.maximumBytes
        {
            gone.append(oldest.attempt)
            kept.removeFirst()
        }
        return gone
    }

    /// The attempt with a `state`.
    ///
    /// The time it takes does not depend on which attempt matches.
    /// - Throws: `browser.attempt_unknown`.
    package func find(state: String) throws(BrowserError) -> SignInAttempt {
        let wanted = Array(state.utf8)
        var match: SignInAttempt?
        for (attempt, _) in all where ConstantTime.areEqual(Array(attempt.state.utf8), wanted) { match = attempt }
        guard let match else { throw BrowserError(.browserAttemptUnknown, "no sign-in of this browser has the state") }
        return match
    }
}
