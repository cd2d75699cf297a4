package import MartletCore
private import MartletCrypto

/// The sign-ins of one browser that wait for a provider, the oldest first.
///
/// They are kept in a cookie that only the gateway can read (``AttemptSeal``), so that nothing is stored for a browser
/// that never comes back.
package struct SignInAttempts: Sendable {
    /// How long an attempt can be completed.
    package static let lifetime = Duration.seconds(600)
    /// Attempts at the same time; with another one the oldest goes.
    package static let maximumCount = 5
    /// How far the clocks of instances may differ, in seconds.
    private static let clockSkew: Int64 = 60

    package internal(set) var all: [SignInAttempt] = []

    package init() {}

    package var isEmpty: Bool { all.isEmpty }

    /// Adds an attempt.
    ///
    /// What does not fit into a cookie is shortened from the oldest on: first the pages that older attempts return to
    /// become `/`, then the oldest attempts go. The new one is always complete.
    /// - Throws: `browser.attempt_too_large` if the new one does not fit by itself.
    package mutating func add(_ attempt: SignInAttempt, now: UnixTime) throws(BrowserError) {
        var kept = all.filter { Self.isCurrent($0, now) }
        kept.removeFirst(max(kept.count - (Self.maximumCount - 1), 0))
        kept.append(attempt)
        let newest = kept.count - 1
        for index in kept.indices where AttemptCoding.size(kept) > AttemptSeal.maximumContent {
            guard index < newest, case .page = kept[index].destination else { continue }
            kept[index].destination = .page(ReturnTarget.home.text)
        }
        while kept.count > 1, AttemptCoding.size(kept) > AttemptSeal.maximumContent { kept.removeFirst() }
        guard AttemptCoding.isEncodable(attempt), AttemptCoding.size(kept) <= AttemptSeal.maximumContent else {
            throw BrowserError(.browserAttemptTooLarge, "a sign-in does not fit into a cookie")
        }
        all = kept
    }

    /// Takes the attempt with a `state` out: it cannot be taken again, whatever the outcome.
    ///
    /// Clients are not shown which of the errors it was. The time it takes does not depend on which attempt matches.
    /// - Throws: `browser.attempt_unknown`, `browser.attempt_provider`, `browser.attempt_expired`.
    package mutating func take(
        state: String, provider: String, now: UnixTime
    ) throws(BrowserError) -> SignInAttempt {
        let wanted = Array(state.utf8)
        var match: Int?
        for index in all.indices where ConstantTime.areEqual(Array(all[index].state.utf8), wanted) { match = index }
        guard let match else { throw BrowserError(.browserAttemptUnknown, "no sign-in of this browser has the state") }
        let attempt = all.remove(at: match)
        guard attempt.provider.hasSameBytes(as: provider) else {
            throw BrowserError(.browserAttemptProvider, "the sign-in was started with another provider")
        }
        guard Self.isCurrent(attempt, now) else {
            throw BrowserError(.browserAttemptExpired, "the sign-in was started too long ago")
        }
        return attempt
    }

    private static func isCurrent(_ attempt: SignInAttempt, _ now: UnixTime) -> Bool {
        now < attempt.created.advanced(bySeconds: lifetime.components.seconds)
            && attempt.created <= now.advanced(bySeconds: clockSkew)
    }
}
