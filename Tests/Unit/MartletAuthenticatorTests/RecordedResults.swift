import MartletAuthenticator
import Synchronization

/// Records the results of verifications, in place of a loop's mailbox.
final class RecordedResults: VerificationResultSink {
    private let recorded = Mutex<[FinishedVerification]>([])

    func receive(_ results: [FinishedVerification]) { recorded.withLock { $0 += results } }

    /// Removes and returns all results.
    func drain() -> [FinishedVerification] {
        recorded.withLock { recorded in
            defer { recorded = [] }
            return recorded
        }
    }
}
