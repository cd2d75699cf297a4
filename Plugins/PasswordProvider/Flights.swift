internal import MartletProvider
private import Synchronization

/// Lets callers who ask the same thing at the same time share one answer.
///
/// A client with Basic opens several connections at once; each request would cost a hash and count as an attempt.
final class Flights<Value: Sendable>: Sendable {
    private typealias Answer = Result<Value, AuthenticationError>
    /// `nil` where the answer came before the wait began.
    private typealias Waiter = CheckedContinuation<Answer?, Never>

    private struct Key: Hashable {
        let text: [UInt8]
        let season: Int
    }

    private struct State {
        var waiting: [Key: [Waiter]] = [:]
        var season = 0
    }

    private let state = Mutex(State())

    /// The answer of the flight with this key, or of `work` if there is none.
    func join(
        _ key: [UInt8], _ work: () async throws(AuthenticationError) -> Value
    ) async throws(AuthenticationError) -> Value {
        let key = state.withLock { Key(text: key, season: $0.season) }
        while !begin(key) {
            if let answer = await wait(for: key) { return try answer.get() }
        }
        let answer: Answer
        do { answer = .success(try await work()) } catch { answer = .failure(error) }
        for waiter in state.withLock({ $0.waiting.removeValue(forKey: key) }) ?? [] { waiter.resume(returning: answer) }
        return try answer.get()
    }

    /// Lets nobody who comes from now on join a flight that is under way: what it finds out may be out of date.
    func closeDoors() { state.withLock { $0.season &+= 1 } }

    private func begin(_ key: Key) -> Bool {
        state.withLock { state in
            guard state.waiting[key] == nil else { return false }
            state.waiting[key] = []
            return true
        }
    }

    private func wait(for key: Key) async -> Answer? {
        await withCheckedContinuation { waiter in
            let isFlying = state.withLock { state in
                state.waiting[key]?.append(waiter)
                return state.waiting[key] != nil
            }
            if !isFlying { waiter.resume(returning: nil) }
        }
    }
}
