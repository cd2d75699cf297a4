internal import MartletCore
internal import MartletProvider
private import Synchronization

/// Bounds how many nonces an instance gives out while they live.
///
/// Anybody may ask for one, and each takes a place in the store: without a bound a flood of them would leave no place for
/// what logins need.
final class NonceBudget: Sendable {
    private struct State {
        var end = MonotonicTime(nanoseconds: .min)
        var count = 0
        var countOfNetwork: [ClientNetwork: Int] = [:]
    }

    /// A quarter of what a store in memory holds; two windows may overlap in it.
    static let standard = 25_000
    /// What one network may take of that, so that one flood leaves something to others.
    static let share = 5

    private let window: Duration
    private let maximum: Int
    private let state = Mutex(State())

    init(window: Duration, maximum: Int = standard) {
        self.window = window
        self.maximum = maximum
    }

    /// Takes one.
    /// - Returns: how long it is until there are more, where there is none; `nil` when one was taken.
    func take(at now: MonotonicTime, for network: ClientNetwork?) -> Duration? {
        state.withLock { state in
            if now >= state.end { state = State(end: now + window) }
            guard state.count < maximum else { return state.end.since(now) }
            // As many entries at most as nonces.
            if let network {
                let taken = state.countOfNetwork[network] ?? 0
                guard taken < max(maximum / Self.share, 1) else { return state.end.since(now) }
                state.countOfNetwork[network] = taken + 1
            }
            state.count += 1
            return nil
        }
    }
}
