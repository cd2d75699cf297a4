package import MartletCore

/// A provider whose users sign in, which limits how often that may fail.
public protocol FailureLimiting: Provider {
    /// How many logins may fail (401, 403) from one network before further ones get 429 without calling the provider.
    var failureLimit: FailureLimit { get }
}

extension FailureLimiting {
    /// ``FailureLimit/standard``.
    public var failureLimit: FailureLimit { .standard }
}

/// How many attempts may fail from one IPv4 address, or one IPv6 /64.
///
/// The weight of a failure decays to zero within the window. A /24 and a /56 have 4 times the budget; a /48, and all
/// clients with unknown addresses together, 16 times.
public struct FailureLimit: Sendable, Hashable {
    public let attempts: Int
    public let window: Duration

    /// - Parameters:
    ///   - attempts: at least 1.
    ///   - window: the time after which the whole budget is available again.
    public init(attempts: Int, window: Duration) {
        self.attempts = max(attempts, 1)
        self.window = window
    }

    /// 600 in two minutes.
    public static let standard = FailureLimit(.logins)

    /// That of a bound; none where it has another share than a rate.
    package init(_ bound: SharedBound) {
        let rate = bound.rate ?? (.max, .seconds(1))
        self.init(attempts: rate.count, window: rate.window)
    }
}
