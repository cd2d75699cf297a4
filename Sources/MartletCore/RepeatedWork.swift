/// A step that a task takes again and again, with a pause before each, until it is stopped.
public final class RepeatedWork: Sendable {
    private let task = Lock<Task<Void, Never>?>(nil)

    public init() {}

    deinit { cancel() }

    /// Starts, unless it has been started.
    /// - Parameters:
    ///   - pause: before each step; `nil` ends the work.
    ///   - step: what is done.
    public func start(
        after pause: @escaping @Sendable () -> Duration?, _ step: @escaping @Sendable () async -> Void
    ) {
        let new = Task.detached {
            while !Task.isCancelled, let pause = pause() {
                do { try await Task.sleep(for: pause) } catch { return }
                await step()
            }
        }
        let isNeeded = task.withLock { task in
            guard task == nil else { return false }
            task = new
            return true
        }
        if !isNeeded { new.cancel() }
    }

    /// Ends the work after a step in progress, and waits for that.
    public func stop() async { await cancel()?.value }

    /// The same without waiting.
    @discardableResult public func cancel() -> Task<Void, Never>? {
        let running = task.withLock { task in
            defer { task = nil }
            return task
        }
        running?.cancel()
        return running
    }
}

/// Work that those who ask for it at the same time share. It runs in a task of its own, whoever of them is cancelled.
public final class SharedWork: Sendable {
    /// Those who wait; `nil` while the work does not run.
    private let waiting = Lock<[CheckedContinuation<Void, Never>]?>(nil)

    public init() {}

    /// Whether the work is under way.
    public var isRunning: Bool { waiting.withLock { $0 != nil } }

    /// Starts the work, or joins it where it is under way, and waits for its end.
    public func run(_ work: @escaping @Sendable () async -> Void) async {
        await withCheckedContinuation { (waiter: CheckedContinuation<Void, Never>) in
            let isFirst = waiting.withLock { waiting in
                defer { waiting = (waiting ?? []) + [waiter] }
                return waiting == nil
            }
            guard isFirst else { return }
            Task.detached {
                await work()
                let waiters = self.waiting.withLock { waiting in
                    defer { waiting = nil }
                    return waiting ?? []
                }
                for waiter in waiters { waiter.resume() }
            }
        }
    }
}
