internal import MartletCore

/// Records the health and the counters of an account store for its callers and its threads.
final class AccountHealthRecorder: Sendable {
    private struct Content {
        var health = AccountHealth(state: .starting)
        var calls = CallFailures()
        var outage = OutageLog()
        var failingCalls = OutageLog()
        var statements = OutageLog()

        /// - Returns: what fails, with the line that is to be logged; or for how long it did.
        mutating func note(
            _ failure: AccountError?, _ operation: @autoclosure () -> [Statement], at now: MonotonicTime
        ) -> (failing: AccountError?, line: OutageLog.Line?, span: Duration?) {
            calls.ended(operation(), failure, at: now)
            guard let failing = calls.failure else {
                return (nil, nil, failingCalls.isActive ? failingCalls.succeeded(at: now) : nil)
            }
            // A call that works meanwhile is no failure that was not logged.
            guard failure?.kind == .unavailable else { return (nil, nil, nil) }
            return (failing, failingCalls.failed("\(failing.code)", at: now), nil)
        }
    }

    private let content = Lock(Content())
    private let clock: Clock
    private let logger: Logger

    init(clock: Clock, logger: Logger) {
        self.clock = clock
        self.logger = logger
    }

    var health: AccountHealth {
        content.withLock { content in
            var health = content.health
            if health.state == .ready, let failure = content.calls.failure {
                health.state = .degraded
                health.code = failure.code
                health.detail = "calls fail: \(failure.message) [\(failure.code)]"
            }
            return health
        }
    }

    /// Counts a call that began at an instant, and its outcome.
    /// - Parameter operation: the statements that it begins with.
    func count(_ failure: AccountError?, of operation: @autoclosure () -> [Statement], since start: MonotonicTime) {
        let now = clock.monotonicTime
        let (failing, line, span) = content.withLock { content in
            let isUnavailable = failure?.kind == .unavailable
            content.health.counts.count(now.since(start), failed: isUnavailable)
            if let failure, isUnavailable { content.health.failures[failure.code, default: 0] += 1 }
            return content.note(failure, operation(), at: now)
        }
        if let failing, let line {
            let fields = [("code", "\(failing.code)"), ("reason", failing.message)] + line.fields
            logger.warning("account store calls fail", fields)
        }
        if let span { logger.info("account store calls succeed", ("seconds", String(span.wholeSeconds))) }
    }

    /// The instant to count a call from.
    var now: MonotonicTime { clock.monotonicTime }

    /// Records that the store is available, and logs the end of an outage.
    func ready() {
        let span: Duration? = content.withLock { content in
            guard content.health.state != .stopped else { return nil }
            content.health.state = .ready
            // Most calls find no outage, and need no time.
            guard content.outage.isActive else { return nil }
            content.health.detail = ""
            return content.outage.succeeded(at: clock.monotonicTime)
        }
        if let span { logger.info("account store available again", ("seconds", String(span.wholeSeconds))) }
    }

    func reconnected() { content.withLock { $0.health.reconnects += 1 } }

    /// Records an outage, and logs what is new about it.
    func unavailable(_ error: AccountError, as event: String = "account store unavailable") {
        let line: OutageLog.Line? = content.withLock { content in
            guard content.health.state != .stopped else { return nil }
            content.health.state = .unavailable
            content.health.code = error.code
            content.health.detail = error.message
            return content.outage.failed("\(error.code) \(error.message)", at: clock.monotonicTime)
        }
        guard let line else { return }
        logger.warning(event, [("code", "\(error.code)"), ("reason", error.message)] + line.fields)
    }

    /// Logs why the server did not execute a statement.
    func statementFailed(_ reason: String) {
        let line = content.withLock { $0.statements.failed(reason, at: clock.monotonicTime) }
        guard let line else { return }
        logger.warning(
            "account store statement failed",
            [("code", "\(ErrorCode.accountsFailed)"), ("reason", reason)] + line.fields)
    }

    func stopped() { content.withLock { $0.health.state = .stopped } }
}
