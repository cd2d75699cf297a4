internal import MartletCore
private import Synchronization

/// Completes when every loop has processed a message; waiting has a deadline, because a loop may be stuck.
package final class LoopAcknowledgement: Sendable {
    private let missing: Atomic<Int>
    private let done = OnceOnly<Bool>()

    /// - Parameter loops: how many loops have to acknowledge.
    package init(loops: Int) {
        missing = Atomic(loops)
        if loops <= 0 { done.complete(true) }
    }

    /// Acknowledges for one loop; each loop calls it once.
    package func acknowledge() {
        if missing.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 { done.complete(true) }
    }

    /// Waits for all loops.
    /// - Returns: whether all had acknowledged before the deadline.
    package func wait(within timeout: Duration) async -> Bool { await done.value(within: timeout) ?? false }
}
