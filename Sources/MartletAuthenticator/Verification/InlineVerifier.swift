internal import MartletCore
internal import MartletProvider

/// Verifies credentials on the loop itself, at the end of an iteration.
///
/// For a little computing, handing it to another thread costs more than it saves; only a long queue is worth spreading
/// over other processors. Requests with cached tokens were served before. Results are delivered together, after a few
/// iterations while more is queued: requests sent in a row then wake the upstream once.
struct InlineVerifier {
    /// Time budget of one iteration in nanoseconds: some ten RSA-2048 signatures.
    ///
    /// A verification that has begun is not interrupted. The budget is time, as the issuer's key decides how long one
    /// takes: RSA-8192 takes fifteen times as long.
    static let passTime: Int64 = 250_000
    /// For how many iterations results are held while others are still queued: a millisecond.
    static let roundPasses = 4
    /// How many jobs may be queued here: a burst of that size is verified within some milliseconds.
    static let limit = 64

    private var waiting = FIFO<Verifier.Job>()
    private var completed: [(job: Verifier.Job, result: VerificationResult)] = []
    private var subjects = SubjectNumbers()
    /// Iterations since results were delivered.
    private var passes = 0

    /// Whether there is nothing to do in the next iteration; results are held only while jobs are queued.
    var isIdle: Bool { waiting.isEmpty }

    /// Queues a job, if it may run on a loop and the queue is not full.
    ///
    /// Only for providers that declare themselves quick: any other could hold up the whole loop.
    mutating func enqueue(_ job: Verifier.Job) -> Bool {
        guard case .provider(let handle) = job.target, handle.quick != nil, waiting.count < InlineVerifier.limit else {
            return false
        }
        waiting.append(job)
        return true
    }

    /// Verifies the first queued jobs, as many as fit into the time budget.
    ///
    /// - Parameters:
    ///   - clock: measures the time budget.
    ///   - others: receives jobs that cannot be decided immediately, with the identity where only its account is
    ///     missing.
    /// - Returns: the results to deliver now, in submission order.
    mutating func run(
        by clock: Clock, others: (Verifier.Job, Identity?) -> Void
    ) -> [(job: Verifier.Job, result: VerificationResult)] {
        let end = clock.monotonicTime.nanoseconds &+ InlineVerifier.passTime
        repeat {
            guard let job = waiting.popFirst() else { break }
            switch verify(job) {
            case .decided(let result):
                job.count(result)
                completed.append((job, result))
            case .waits(let identity): others(job, identity)
            }
        } while clock.monotonicTime.nanoseconds < end
        passes += 1
        guard waiting.isEmpty || passes == InlineVerifier.roundPasses else { return [] }
        passes = 0
        defer { completed = [] }
        return completed
    }

    private enum Decision {
        case decided(VerificationResult)
        /// For the provider, or for the account of an identity.
        case waits(Identity?)
    }

    private mutating func verify(_ job: Verifier.Job) -> Decision {
        guard case .provider(let handle) = job.target,
            let result = handle.quick?.decide(job.credential, in: job.context)
        else { return .waits(nil) }
        switch result {
        case .success(let identity) where job.needsAccount(of: identity): return .waits(identity)
        case .success(let identity):
            return .decided(.success(handle.principal(of: identity) { subjects.number(of: $0) }))
        case .failure(let error): return .decided(.failure(error))
        }
    }
}
