internal import MartletCore
internal import Synchronization

/// Allocates slots; every request needs one.
final class FetchSlots: Sendable {
    private struct State {
        var pools: [FetchPurpose: FetchSlotPool] = [:]
        var waiters: [UInt64: CheckedContinuation<HTTPCallError?, Never>] = [:]
        var serial: UInt64 = 0
        var isStopped = false
    }

    private let state = Lock(State())

    /// Waits for a slot.
    /// - Throws: `fetch.overloaded` immediately if the queue is full, `fetch.timeout`, `fetch.cancelled`,
    ///   `fetch.stopped`.
    func acquire(_ purpose: FetchPurpose, within limit: Duration) async throws(HTTPCallError) -> FetchSlot {
        let number = state.withLock { state in
            state.serial &+= 1
            return state.serial
        }
        let owner = WorkOwner.current
        let failure = await withTaskCancellationHandler {
            await wait(number, purpose, for: owner, within: limit)
        } onCancel: {
            end(number, purpose, .cancelled)
        }
        if let failure { throw failure }
        return FetchSlot(purpose, for: owner, of: self)
    }

    /// Whether an owner would get or wait for a slot now.
    func hasCapacity(_ purpose: FetchPurpose, for owner: WorkOwner) -> Bool {
        state.withLock { $0.pools[purpose]?.hasCapacity(for: owner) ?? true }
    }

    private func wait(
        _ number: UInt64, _ purpose: FetchPurpose, for owner: WorkOwner, within limit: Duration
    ) async -> HTTPCallError? {
        var timer: Task<Void, Never>?
        let failure = await withCheckedContinuation { (continuation: CheckedContinuation<HTTPCallError?, Never>) in
            let admission = state.withLock { state -> FetchSlotPool.Admission? in
                guard !state.isStopped else { return nil }
                let admission = state.pools[purpose, default: FetchSlotPool(purpose.limits)].acquire(number, for: owner)
                if admission == .queued { state.waiters[number] = continuation }
                return admission
            }
            switch admission {
            case .granted: continuation.resume(returning: nil)
            case .rejected: continuation.resume(returning: .overloaded)
            case nil: continuation.resume(returning: .stopped)
            case .queued:
                timer = Task {
                    do { try await Task.sleep(for: limit) } catch { return }
                    self.end(number, purpose, .noSlot)
                }
                // The task may have been cancelled before the waiter was registered.
                if Task.isCancelled { end(number, purpose, .cancelled) }
            }
        }
        timer?.cancel()
        return failure
    }

    /// Resumes a waiter with an error.
    private func end(_ number: UInt64, _ purpose: FetchPurpose, _ failure: HTTPCallError) {
        let waiter = state.withLock { state -> CheckedContinuation<HTTPCallError?, Never>? in
            guard let waiter = state.waiters.removeValue(forKey: number) else { return nil }
            state.pools[purpose]?.abandon(number)
            return waiter
        }
        waiter?.resume(returning: failure)
    }

    fileprivate func release(_ purpose: FetchPurpose, by owner: WorkOwner) {
        let next = state.withLock { state -> CheckedContinuation<HTTPCallError?, Never>? in
            if let number = state.pools[purpose]?.release(by: owner) {
                return state.waiters.removeValue(forKey: number)
            }
            if state.pools[purpose]?.isIdle == true { state.pools[purpose] = nil }
            return nil
        }
        next?.resume(returning: nil)
    }

    /// Rejects all current and future waiters.
    func stop() {
        let waiters = state.withLock { state in
            state.isStopped = true
            for purpose in state.pools.keys { state.pools[purpose]?.abandonAll() }
            defer { state.waiters = [:] }
            return state.waiters.values
        }
        for waiter in waiters { waiter.resume(returning: .stopped) }
    }
}

/// The permission to send one request at a time; released on deinit.
package final class FetchSlot: Sendable {
    private let purpose: FetchPurpose
    private let owner: WorkOwner
    private let slots: FetchSlots
    private let isUsed = Atomic(false)

    fileprivate init(_ purpose: FetchPurpose, for owner: WorkOwner, of slots: FetchSlots) {
        self.purpose = purpose
        self.owner = owner
        self.slots = slots
    }

    deinit { slots.release(purpose, by: owner) }

    /// Marks the slot as used by a request; `false` if another request is using it.
    func begin() -> Bool { isUsed.exchange(true, ordering: .acquiringAndReleasing) == false }

    func end() { isUsed.store(false, ordering: .releasing) }
}
