internal import MartletAccounts
internal import MartletCore

/// When a job that failed is attempted again.
struct JobSchedule: Sendable {
    private static let first: Int64 = 1_000
    /// For sessions, which users see.
    private static let longestForSessions: Int64 = 15_000
    private static let longest: Int64 = 300_000
    /// How often a revocation is attempted that nothing waits for any more.
    private static let abandoned: Int64 = 86_400_000
    private static let jitter = 0.2

    /// The instant of the next attempt, in milliseconds since 1970.
    /// - Parameters:
    ///   - now: when the attempt failed.
    ///   - retryAfter: the pause that an issuer asked for.
    ///   - random: a number from 0 to 1 that spreads the attempts.
    static func retry(_ job: AccountJob, at now: Int64, retryAfter: Duration?, random: Double) -> Int64 {
        let limit =
            switch job.kind {
            case .endSessions, .publishClaims: longestForSessions
            case .revoke, .deleteAccount: longest
            }
        var delay = first
        for _ in 0..<min(max(job.attempts, 0), 20) { delay = min(delay * 2, limit) }
        let spread = 1 + jitter * (2 * min(max(random, 0), 1) - 1)
        let pause = max(Int64(Double(delay) * spread), min(retryAfter?.wholeMilliseconds ?? 0, abandoned))
        return later(now, by: pause)
    }

    /// Whether a revocation has been attempted for as long as the policy says.
    static func isAbandoned(_ job: AccountJob, _ policy: DeletionPolicy, at now: Int64) -> Bool {
        let (age, overflow) = now.subtractingReportingOverflow(job.createdAt)
        return overflow || age >= policy.maximumRevocationAge.wholeMilliseconds
    }

    /// The next attempt of a revocation that nothing waits for.
    static func nextAbandoned(at now: Int64) -> Int64 { later(now, by: abandoned) }

    static func later(_ now: Int64, by milliseconds: Int64) -> Int64 {
        let (sum, overflow) = now.addingReportingOverflow(milliseconds)
        return overflow ? .max : sum
    }
}
