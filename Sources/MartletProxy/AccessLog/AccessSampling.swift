internal import MartletConfig
internal import MartletDecisions

/// Decides which access lines of one loop are written.
struct AccessSampling {
    /// What decides it.
    struct Candidate {
        let status: Int
        /// The gateway has rejected the request, or could not complete it.
        let isRejected: Bool
        /// A request for health, metrics or a page of the admin listener.
        let isProbe: Bool
    }

    /// Whether a line is written.
    enum Decision: Equatable {
        case drop
        /// It stands for itself.
        case write
        /// It stands for all that were dropped.
        case writeSampled
    }

    private var numbers: SampleNumbers

    init(seed: UInt64) { numbers = SampleNumbers(seed: seed) }

    mutating func decide(_ candidate: Candidate, _ plan: AccessPlan) -> Decision {
        if candidate.isRejected || candidate.status >= 500 { return .write }
        if candidate.isProbe, !plan.logsProbes { return .drop }
        if plan.sample == .all { return .write }
        let number = numbers.next() % UInt64(SamplePercentage.all.millionths)
        return number < UInt64(max(plan.sample.millionths, 0)) ? .writeSampled : .drop
    }
}
