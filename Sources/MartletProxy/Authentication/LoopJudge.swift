internal import MartletCore
internal import MartletProvider

/// Credentials that a loop judges itself, at the end of a pass.
///
/// Where nothing but a little computing is needed, the way to another thread and back costs more than it saves. It is gone
/// only where so much waits that other processors should help. Who came with a known token was served before. What was judged
/// is given away together, after some passes where more waits: sent in a row, it wakes whoever gets it once.
struct LoopJudge {
    /// How long a pass judges: some ten signatures of RSA-2048.
    ///
    /// What has begun is not interrupted. By the clock, as the issuer's key decides how long one takes: RSA-8192 fifteen times as long.
    static let passTime: Int64 = 250_000
    /// For how many passes verdicts are kept while others are still to come: a millisecond.
    static let roundPasses = 4
    /// How many may wait here: of a burst, so many are judged within some milliseconds.
    static let limit = 64

    private var waiting = FIFO<Verifier.Job>()
    private var judged: [(job: Verifier.Job, verdict: Verdict)] = []
    /// Since verdicts were given away.
    private var passes = 0

    /// Whether there is nothing to do in the next pass.
    ///
    /// Verdicts are kept only while something waits.
    var isIdle: Bool { waiting.isEmpty }

    /// Takes a job, if it is one for a loop and there is room.
    ///
    /// Only for providers that say of themselves that they are quick: any other could hold up the whole loop.
    mutating func take(_ job: Verifier.Job) -> Bool {
        guard case .provider(let handle) = job.judge, handle.quick != nil, job.subjects == nil,
            waiting.count < LoopJudge.limit
        else { return false }
        waiting.append(job)
        return true
    }

    /// Judges the first of those that wait, as many as there is time for in a pass.
    ///
    /// - Parameters:
    ///   - clock: tells how much of the time is over.
    ///   - others: takes what cannot be decided at once.
    /// - Returns: the verdicts to go on with now, in the order of asking.
    mutating func judge(by clock: Clock, others: (Verifier.Job) -> Void) -> [(job: Verifier.Job, verdict: Verdict)] {
        let end = clock.monotonicTime.nanoseconds &+ LoopJudge.passTime
        repeat {
            guard let job = waiting.popFirst() else { break }
            if let verdict = Self.verdict(on: job) { judged.append((job, verdict)) } else { others(job) }
        } while clock.monotonicTime.nanoseconds < end
        passes += 1
        guard waiting.isEmpty || passes == LoopJudge.roundPasses else { return [] }
        passes = 0
        defer { judged = [] }
        return judged
    }

    /// `nil` where the provider would have to wait.
    private static func verdict(on job: Verifier.Job) -> Verdict? {
        guard case .provider(let handle) = job.judge else { return nil }
        return handle.quick?.decide(job.credential, in: job.context)?.map { handle.principal(of: $0) }
    }
}
