internal import MartletProvider
private import Synchronization

/// Lets callers who ask the same thing at the same time share one answer.
///
/// A client with Basic opens several connections at once; each request would cost a hash and count as an attempt.
final class Flights<Value: Sendable>: Sendable {
    private typealias Answer = Result<Value, AuthenticationError>
    /// `nil` where the answer came before the wait began.
    private typealias Waiter = CheckedContinuation<Answer?, Never>

    private let waiting = Mutex<[[UInt8]: [Waiter]]>([:])

    /// The answer of the flight with this key, or of `work` if there is none.
    func join(
        _ key: [UInt8], _ work: () async throws(AuthenticationError) -> Value
    ) async throws(AuthenticationError) -> Value {
        while !begin(key) {
            if let answer = await wait(for: key) { return try answer.get() }
        }
        let answer: Answer
        do { answer = .success(try await work()) } catch { answer = .failure(error) }
        for waiter in waiting.withLock({ $0.removeValue(forKey: key) }) ?? [] { waiter.resume(returning: answer) }
        return try answer.get()
    }

    private func begin(_ key: [UInt8]) -> Bool {
        waiting.withLock { waiting in
            guard waiting[key] == nil else { return false }
            waiting[key] = []
            return true
        }
    }

    private func wait(for key: [UInt8]) async -> Answer? {
        await withCheckedContinuation { waiter in
            let isFlying = waiting.withLock { waiting in
                waiting[key]?.append(waiter)
                return waiting[key] != nil
            }
            if !isFlying { waiter.resume(returning: nil) }
        }
    }
}
