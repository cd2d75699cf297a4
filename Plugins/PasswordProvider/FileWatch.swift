private import Synchronization

/// Looks after a file of users once a second, on no loop's thread.
final class FileWatch: Sendable {
    private static let interval = Duration.seconds(1)

    private let task = Mutex<Task<Void, Never>?>(nil)

    /// Begins; a second call changes nothing.
    func start(_ look: @escaping @Sendable () -> Void) {
        task.withLock { task in
            guard task == nil else { return }
            task = Task.detached {
                while !Task.isCancelled {
                    do { try await Task.sleep(for: Self.interval) } catch { return }
                    look()
                }
            }
        }
    }

    /// Ends it.
    func stop() {
        task.withLock { task in
            task?.cancel()
            task = nil
        }
    }

    deinit { stop() }
}
