internal import MartletCore
internal import MartletIO

/// Callers that wait for a connection, on the event loop. Each is called once: when there is one, with the error of an
/// attempt, or at its deadline.
final class ConnectWaiters {
    typealias Completion = @Sendable (StoreError?) -> Void

    private struct Waiter {
        let completion: Completion
        let timer: LoopTimer
    }

    private let loop: ServiceLoop
    private let timeout: Duration
    private var waiting: [UInt64: Waiter] = [:]
    private var lastID: UInt64 = 0

    /// - Parameter connectTimeout: of one attempt. To find a server takes up to three: a seed or sentinel, another one
    ///   that it names, and the server.
    init(on loop: ServiceLoop, connectTimeout: Duration) {
        self.loop = loop
        timeout = connectTimeout * 3
    }

    func add(_ completion: @escaping Completion) {
        lastID &+= 1
        let id = lastID
        let timer = loop.schedule(after: timeout) { [weak self] in
            self?.waiting.removeValue(forKey: id)?.completion(.connectTimeout)
        }
        waiting[id] = Waiter(completion: completion, timer: timer)
    }

    func resume(_ error: StoreError?) {
        let due = waiting.values
        waiting = [:]
        for waiter in due {
            waiter.timer.cancel()
            waiter.completion(error)
        }
    }
}

extension LoopBound {
    /// Waits on the loop for a connection.
    /// - Parameter start: calls back once.
    /// - Throws: `redis.stopped` without a value, or what `start` reports.
    func waitUntilConnected(
        _ start: @escaping @Sendable (Value, @escaping ConnectWaiters.Completion) -> Void
    ) async throws(StoreError) {
        let failure: StoreError? = await withCheckedContinuation { continuation in
            let accepted = loop.execute {
                guard let value = self.value else { return continuation.resume(returning: .stopped) }
                start(value) { continuation.resume(returning: $0) }
            }
            if !accepted { continuation.resume(returning: .stopped) }
        }
        if let failure { throw failure }
    }
}
