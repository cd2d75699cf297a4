private import Synchronization

/// The background work of a provider: a step again and again, with a pause in between.
final class KeyWork: Sendable {
    private let task = Mutex<Task<Void, Never>?>(nil)

    /// Starts; idempotent.
    func start(every interval: Duration, _ step: @escaping @Sendable () async -> Void) {
        task.withLock { task in
            guard task == nil else { return }
            task = Task.detached {
                while !Task.isCancelled {
                    do { try await Task.sleep(for: interval) } catch { return }
                    await step()
                }
            }
        }
    }

    /// Stops, and waits for a step in progress.
    func stop() async {
        let running = task.withLock { task in
            defer { task = nil }
            return task
        }
        running?.cancel()
        await running?.value
    }

    deinit { task.withLock { $0 }?.cancel() }
}
