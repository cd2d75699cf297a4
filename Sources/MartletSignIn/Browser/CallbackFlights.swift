internal import MartletCore
internal import MartletResponder

/// The ways back from providers that are being completed by this process: an identical one waits for the outcome of the
/// first.
///
/// Browsers inside apps, reloads and double clicks send one twice at the same moment, and a provider accepts its code
/// once. There are as many entries as requests that are handled.
final class CallbackFlights: Sendable {
    /// The outcome of a callback.
    enum Outcome: Sendable {
        case response(CallbackResponse)
        case cancelled
        case failed(Failure)
    }

    /// `nil` if there is no outcome: the wait begins anew.
    private typealias Waiter = CheckedContinuation<Outcome?, Never>

    private let waiting = Lock<[String: [Waiter]]>([:])

    /// How many wait for the outcome of another one.
    var waiters: Int { waiting.withLock { $0.values.reduce(0) { $0 + $1.count } } }

    /// The outcome of `body`, or that of the identical way back which is being completed.
    /// - Parameter name: of the way back.
    func join(_ name: String, _ body: () async -> Outcome) async -> Outcome {
        while !begin(name) {
            if let outcome = await wait(for: name) { return outcome }
        }
        let outcome = await body()
        // The outcome of one that its browser gave up says nothing about the next.
        let shared = Task.isCancelled ? nil : outcome
        for waiter in waiting.withLock({ $0.removeValue(forKey: name) }) ?? [] { waiter.resume(returning: shared) }
        return outcome
    }

    private func begin(_ name: String) -> Bool {
        waiting.withLock { waiting in
            guard waiting[name] == nil else { return false }
            waiting[name] = []
            return true
        }
    }

    private func wait(for name: String) async -> Outcome? {
        await withCheckedContinuation { waiter in
            let isInFlight = waiting.withLock { waiting in
                waiting[name]?.append(waiter)
                return waiting[name] != nil
            }
            if !isInFlight { waiter.resume(returning: nil) }
        }
    }
}
