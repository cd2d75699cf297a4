private import Synchronization

/// What became of a reload that somebody asked for and waits for.
enum ReloadOutcome: Sendable, Equatable {
    /// The new configuration is in force; its warnings.
    case done(routes: Int, warnings: [String])
    /// The old one stays; everything that is wrong.
    case refused([String])
    /// The process ends instead.
    case ending
    /// It has not come to its end in time, and goes on.
    case underWay
    /// Too many wait already.
    case busy
}

/// Where reloads are asked for: whoever waits when one begins gets its outcome.
final class ReloadDesk: Sendable {
    typealias Number = UInt64

    private struct State {
        var last: Number = 0
        var waiting: [Number: CheckedContinuation<ReloadOutcome, Never>] = [:]
        var isClosed = false
    }

    /// Those who may wait at a time.
    private static let limit = 16

    private let begin: @Sendable () -> Void
    private let state = Mutex(State())

    /// - Parameter begin: has a reload begin, soon and off this thread.
    init(_ begin: @escaping @Sendable () -> Void) { self.begin = begin }

    /// Asks for a reload and waits for its outcome, no longer than a limit.
    func ask(within limit: Duration) async -> ReloadOutcome {
        await withCheckedContinuation { continuation in
            let taken = state.withLock { state -> Result<Number, Refusal> in
                guard !state.isClosed else { return .failure(Refusal(outcome: .ending)) }
                guard state.waiting.count < ReloadDesk.limit else { return .failure(Refusal(outcome: .busy)) }
                state.last += 1
                state.waiting[state.last] = continuation
                return .success(state.last)
            }
            switch taken {
            case .failure(let refusal): continuation.resume(returning: refusal.outcome)
            case .success(let number):
                begin()
                Task {
                    try? await Task.sleep(for: limit)
                    self.settle([number], .underWay)
                }
            }
        }
    }

    private struct Refusal: Error {
        let outcome: ReloadOutcome
    }

    /// Those whose reload begins now.
    func waiting() -> [Number] { state.withLock { Array($0.waiting.keys) } }

    /// Tells some of those who wait.
    func settle(_ numbers: [Number], _ outcome: ReloadOutcome) {
        let waiters = state.withLock { state in numbers.compactMap { state.waiting.removeValue(forKey: $0) } }
        for waiter in waiters { waiter.resume(returning: outcome) }
    }

    /// There will be no reload any more.
    func close() {
        state.withLock { $0.isClosed = true }
        settle(waiting(), .ending)
    }
}
