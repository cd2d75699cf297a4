internal import Synchronization

/// Hands out slots: nobody sends a request without one.
final class FetchSlots: Sendable {
    private struct State {
        var shares: [FetchPurpose: FetchShare] = [:]
        var waiters: [UInt64: CheckedContinuation<FetchFailure?, Never>] = [:]
        var serial: UInt64 = 0
        var isStopped = false
    }

    private let state = Mutex(State())

    /// Waits for a slot.
    /// - Throws: `fetch.overloaded` at once when too many wait, `fetch.timeout`, `fetch.cancelled`, `fetch.stopped`.
    func acquire(_ purpose: FetchPurpose, within limit: Duration) async throws(FetchFailure) -> FetchSlot {
        let number = state.withLock { state in
            state.serial &+= 1
            return state.serial
        }
        let failure = await withTaskCancellationHandler {
            await wait(number, purpose, within: limit)
        } onCancel: {
            end(number, purpose, .cancelled)
        }
        if let failure { throw failure }
        return FetchSlot(purpose, of: self)
    }

    private func wait(_ number: UInt64, _ purpose: FetchPurpose, within limit: Duration) async -> FetchFailure? {
        var timer: Task<Void, Never>?
        let failure = await withCheckedContinuation { (continuation: CheckedContinuation<FetchFailure?, Never>) in
            let admission = state.withLock { state -> FetchShare.Admission? in
                guard !state.isStopped else { return nil }
                let admission = state.shares[purpose, default: FetchShare(purpose.limits)].enter(number)
                if admission == .queued { state.waiters[number] = continuation }
                return admission
            }
            switch admission {
            case .granted: continuation.resume(returning: nil)
            case .refused: continuation.resume(returning: .overloaded)
            case nil: continuation.resume(returning: .stopped)
            case .queued:
                timer = Task {
                    do { try await Task.sleep(for: limit) } catch { return }
                    self.end(number, purpose, .noSlot)
                }
                // The cancellation may have come before there was anything to end.
                if Task.isCancelled { end(number, purpose, .cancelled) }
            }
        }
        timer?.cancel()
        return failure
    }

    /// Ends the waiting of one who has no slot yet.
    private func end(_ number: UInt64, _ purpose: FetchPurpose, _ failure: FetchFailure) {
        let waiter = state.withLock { state -> CheckedContinuation<FetchFailure?, Never>? in
            guard let waiter = state.waiters.removeValue(forKey: number) else { return nil }
            state.shares[purpose]?.abandon(number)
            return waiter
        }
        waiter?.resume(returning: failure)
    }

    fileprivate func release(_ purpose: FetchPurpose) {
        let next = state.withLock { state -> CheckedContinuation<FetchFailure?, Never>? in
            if let number = state.shares[purpose]?.leave() { return state.waiters.removeValue(forKey: number) }
            if state.shares[purpose]?.isIdle == true { state.shares[purpose] = nil }
            return nil
        }
        next?.resume(returning: nil)
    }

    /// Refuses whoever waits, and whoever comes.
    func stop() {
        let waiters = state.withLock { state in
            state.isStopped = true
            for purpose in state.shares.keys { state.shares[purpose]?.abandonAll() }
            defer { state.waiters = [:] }
            return state.waiters.values
        }
        for waiter in waiters { waiter.resume(returning: .stopped) }
    }
}

/// The right to have one request under way; given back with its last owner.
package final class FetchSlot: Sendable {
    private let purpose: FetchPurpose
    private let slots: FetchSlots
    private let isUsed = Atomic(false)

    fileprivate init(_ purpose: FetchPurpose, of slots: FetchSlots) {
        self.purpose = purpose
        self.slots = slots
    }

    deinit { slots.release(purpose) }

    /// Takes the slot for one request; `false` while another uses it.
    func begin() -> Bool { isUsed.exchange(true, ordering: .acquiringAndReleasing) == false }

    func end() { isUsed.store(false, ordering: .releasing) }
}
