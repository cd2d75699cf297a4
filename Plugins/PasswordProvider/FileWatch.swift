private import Synchronization

/// Polls a users file once a second, on a thread that is not an event loop's.
final class FileWatch: Sendable {
    private static let interval = Duration.seconds(1)

    private let task = Mutex<Task<Void, Never>?>(nil)

    /// Starts polling; idempotent.
    func start(_ poll: @escaping @Sendable () -> Void) {
        task.withLock { task in
            guard task == nil else { return }
            task = Task.detached {
                while !Task.isCancelled {
                    do { try await Task.sleep(for: Self.interval) } catch { return }
                    poll()
                }
            }
        }
    }

    /// Stops polling.
    func stop() {
        task.withLock { task in
            task?.cancel()
            task = nil
        }
    }

    deinit { stop() }
}
