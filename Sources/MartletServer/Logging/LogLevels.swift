package import MartletCore

/// Which log level is in effect: that of the configuration, or one that was set at run time, for a while or until the
/// configuration names another one.
package struct LogLevels: Sendable, Equatable {
    /// A level that was set at run time.
    package struct Override: Sendable, Equatable {
        package let level: LogLevel
        /// `never` without an end.
        package let until: MonotonicTime
    }

    package private(set) var configured: LogLevel
    package private(set) var override: Override?

    package init(configured: LogLevel) { self.configured = configured }

    /// The level in effect.
    package var current: LogLevel { override?.level ?? configured }

    /// When the level of the configuration returns; `nil` if nothing but a change of the configuration brings it back.
    package var deadline: MonotonicTime? { override.flatMap { $0.until == .never ? nil : $0.until } }

    /// Sets a level instead of the configured one.
    /// - Parameter span: how long; `nil` until the configuration names another level.
    package mutating func set(_ level: LogLevel, for span: Duration?, now: MonotonicTime) {
        override = Override(level: level, until: span.map { now + $0 } ?? .never)
    }

    /// Applies the level of a configuration: one that differs from the last ends what was set at run time.
    package mutating func configure(_ level: LogLevel) {
        guard level != configured else { return }
        configured = level
        override = nil
    }

    /// Ends what was set at run time, if its time is over.
    /// - Returns: whether it was.
    package mutating func expire(now: MonotonicTime) -> Bool {
        guard let override, override.until <= now else { return false }
        self.override = nil
        return true
    }
}

/// Applies ``LogLevels`` to the threshold of all loggers.
package final class LogLevelControl: Sendable {
    private struct State {
        var levels: LogLevels
        var timer: Task<Void, Never>?
    }

    let threshold: LogThreshold
    private let clock: Clock
    private let state: Lock<State>

    /// - Parameter level: the configured one.
    package init(_ level: LogLevel, clock: Clock) {
        threshold = LogThreshold(level)
        self.clock = clock
        state = Lock(State(levels: LogLevels(configured: level)))
    }

    package var levels: LogLevels { state.withLock { $0.levels } }

    /// Sets a level instead of the configured one.
    /// - Parameters:
    ///   - span: how long; `nil` until the configuration names another level.
    ///   - onExpiry: called when that time is over, with the level that is in effect then.
    /// - Returns: what is in effect now.
    @discardableResult
    package func set(
        _ level: LogLevel, for span: Duration?, onExpiry: @escaping @Sendable (LogLevel) -> Void = { _ in }
    ) -> LogLevels {
        let timer = span.map { span in
            Task { [weak self] in
                var wait: Duration? = max(span, .zero)
                while let time = wait {
                    do { try await Task.sleep(for: time) } catch { return }
                    wait = self?.expire(onExpiry)
                }
            }
        }
        let now = clock.monotonicTime
        let (levels, old) = state.withLock { state in
            defer { state.timer = timer }
            state.levels.set(level, for: span, now: now)
            threshold.level = state.levels.current
            return (state.levels, state.timer)
        }
        old?.cancel()
        return levels
    }

    /// Applies the level of a configuration.
    package func configure(_ level: LogLevel) {
        let ended = state.withLock { state -> Task<Void, Never>? in
            state.levels.configure(level)
            threshold.level = state.levels.current
            guard state.levels.override == nil else { return nil }
            defer { state.timer = nil }
            return state.timer
        }
        ended?.cancel()
    }

    /// Ends what was set at run time, if its time is over.
    /// - Returns: how long to wait otherwise.
    private func expire(_ onExpiry: @Sendable (LogLevel) -> Void) -> Duration? {
        let now = clock.monotonicTime
        let (level, deadline): (LogLevel?, MonotonicTime?) = state.withLock { state in
            guard state.levels.expire(now: now) else { return (nil, state.levels.deadline) }
            state.timer = nil
            threshold.level = state.levels.current
            return (state.levels.current, nil)
        }
        if let level { onExpiry(level) }
        return deadline.map { max($0.since(now), .milliseconds(1)) }
    }

    deinit { state.withLock { $0.timer }?.cancel() }
}
