/// Logs the outages of something that is attempted again and again, as ``OutageLog`` decides.
package final class OutageReporter: Sendable {
    private let event: String
    private let end: String
    private let clock: Clock
    private let logger: Logger
    private let outage = Lock(OutageLog())

    /// - Parameters:
    ///   - event: what a failure is called in the log.
    ///   - end: what the end of an outage is called.
    ///   - clock: the source of time.
    ///   - logger: has further fields of the lines.
    package init(_ event: String, end: String, clock: Clock, logger: Logger) {
        self.event = event
        self.end = end
        self.clock = clock
        self.logger = logger
    }

    /// Notes a failed attempt, and logs it if its code or reason is new, or the last line is long ago.
    package func failed(_ error: some CodedError) { failed(error.code, error.message) }

    /// Notes a failed attempt, and logs it if its code or reason is new, or the last line is long ago.
    package func failed(_ code: ErrorCode, _ reason: String) {
        let now = clock.monotonicTime
        guard let line = outage.withLock({ $0.failed("\(code) \(reason)", at: now) }) else { return }
        logger.warning(event, [("code", "\(code)"), ("reason", reason)] + line.fields)
    }

    /// Notes a successful attempt, and logs the end of an outage.
    package func succeeded() {
        let now = clock.monotonicTime
        guard let span = outage.withLock({ $0.succeeded(at: now) }) else { return }
        logger.info(end, ("seconds", String(span.wholeSeconds)))
    }
}
