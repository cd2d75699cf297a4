internal import MartletCore
internal import MartletProvider

/// Lets concurrent callers with the same key share one execution and its result.
///
/// A client with Basic opens several connections at a time; each request would cost a hash and count as an attempt.
final class SingleFlight<Value: Sendable>: Sendable {
    private typealias Outcome = Result<Value, AuthenticationError>
    /// `nil` if the outcome arrived before the wait began.
    private typealias Waiter = CheckedContinuation<Outcome?, Never>

    private struct Key: Hashable {
        let bytes: [UInt8]
        let epoch: Int
    }

    private struct State {
        var waiting: [Key: [Waiter]] = [:]
        var epoch = 0
    }

    private let state = Lock(State())

    /// Joins the execution in flight with this key, or runs `work` if there is none.
    func join(
        _ key: [UInt8], _ work: () async throws(AuthenticationError) -> Value
    ) async throws(AuthenticationError) -> Value {
        let key = state.withLock { Key(bytes: key, epoch: $0.epoch) }
        while !begin(key) {
            if let outcome = await wait(for: key) { return try outcome.get() }
        }
        let outcome: Outcome
        do { outcome = .success(try await work()) } catch { outcome = .failure(error) }
        for waiter in state.withLock({ $0.waiting.removeValue(forKey: key) }) ?? [] {
            waiter.resume(returning: outcome)
        }
        return try outcome.get()
    }

    /// Prevents later callers from joining executions in flight, whose results may be out of date.
    func startNewEpoch() { state.withLock { $0.epoch &+= 1 } }

    private func begin(_ key: Key) -> Bool {
        state.withLock { state in
            guard state.waiting[key] == nil else { return false }
            state.waiting[key] = []
            return true
        }
    }

    private func wait(for key: Key) async -> Outcome? {
        await withCheckedContinuation { waiter in
            let isInFlight = state.withLock { state in
                state.waiting[key]?.append(waiter)
                return state.waiting[key] != nil
            }
            if !isInFlight { waiter.resume(returning: nil) }
        }
    }
}
