internal import MartletAuthenticator
package import MartletCore
internal import MartletProxy

/// Invalidates cached decisions in the loops, as soon as there are any.
package final class CacheInvalidator: Sendable {
    /// How long a revocation waits for the loops.
    private static let timeout = Duration.seconds(1)

    private let target = Lock<LoopGroup?>(nil)
    private let logger: Logger

    package init(logger: Logger) { self.logger = logger }

    func attach(to loops: LoopGroup) { target.withLock { $0 = loops } }

    /// Has every loop invalidate something.
    func post(_ message: LoopMessage) { target.withLock { $0 }?.post(message) }

    /// The same for a change by this instance: returns when every loop has dropped its decisions about it, or after a
    /// timeout.
    func postAndWait(_ change: CredentialChange) async {
        let isDone = await target.withLock { $0 }?.postAndWait(within: Self.timeout) { .credentials(change, $0) }
        guard isDone == false else { return }
        let what =
            switch change {
            case .ended: "revocation"
            case .changed: "changed session"
            }
        logger.warning(
            "event loop did not acknowledge \(what) in time", ("count", String(change.revocationIDs.count)))
    }
}
