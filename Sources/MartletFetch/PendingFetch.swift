internal import MartletCore
private import Synchronization

/// A request and its completion, passed between the caller and the fetcher's thread.
final class PendingFetch: PendingTransfer {
    typealias Outcome = Result<HTTPCallResponse, HTTPCallError>

    let request: HTTPCall
    private let options: FetchOptions
    private let isCancelled = Atomic(false)
    private let completion: Lock<(@Sendable (Outcome) -> Void)?>

    init(_ request: HTTPCall, _ options: FetchOptions, completion: @escaping @Sendable (Outcome) -> Void) {
        self.request = request
        self.options = options
        self.completion = Lock(completion)
    }

    var wasCancelled: Bool { isCancelled.load(ordering: .acquiring) }

    func cancel() { isCancelled.store(true, ordering: .releasing) }

    func makeTransfer() throws(HTTPCallError) -> any RunningTransfer { try FetchTransfer(self, options: options) }

    func fail(_ error: HTTPCallError) { finish(.failure(error)) }

    /// Completes the request; only the first call has an effect.
    func finish(_ outcome: Outcome) {
        let completion = completion.withLock { completion in
            defer { completion = nil }
            return completion
        }
        completion?(outcome)
    }
}

/// The fetch of a task that may be cancelled before the fetch exists.
final class CancellableFetch: Sendable {
    private struct State {
        var fetch: PendingFetch?
        var isCancelled = false
    }

    private let state = Lock(State())

    func start(_ fetch: PendingFetch) {
        state.withLock { state in
            state.fetch = fetch
            if state.isCancelled { fetch.cancel() }
        }
    }

    func cancel() {
        state.withLock { state in
            state.isCancelled = true
            state.fetch?.cancel()
        }
    }
}
