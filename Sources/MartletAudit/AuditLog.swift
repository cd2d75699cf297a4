private import CLinux
package import MartletCore

/// The audit log of the process: gives every event to each destination.
package final class AuditLog: AuditRecording {
    /// Where events go, and what signs them.
    package struct Plan: Sendable {
        package var file: String?
        package var syslog: SyslogTarget?
        package var webhook: AuditWebhook?
        package let key: AuditKey

        package init(key: AuditKey) { self.key = key }

        fileprivate var destinations: [Destination] { sinks.map(\.destination) }

        /// How each destination is written; nothing is opened yet.
        fileprivate var sinks: [(destination: Destination, make: (Clock) -> any AuditSink)] {
            var sinks: [(destination: Destination, make: (Clock) -> any AuditSink)] = []
            if let file { sinks.append((.file(file), { _ in FileSink(path: file) })) }
            if let syslog {
                sinks.append(
                    (.syslog(syslog), { SyslogSink(syslog, host: AuditLog.hostName, process: getpid(), clock: $0) }))
            }
            if let webhook {
                let destination = Destination.webhook(
                    url: webhook.url, timeout: webhook.timeout, isSigned: webhook.signer != nil)
                sinks.append((destination, { WebhookSink(webhook, clock: $0) }))
            }
            return sinks
        }
    }

    /// Identifies a destination over reloads.
    fileprivate enum Destination: Hashable {
        case file(String)
        case syslog(SyslogTarget)
        case webhook(url: String, timeout: Duration, isSigned: Bool)
    }

    /// What ``prepare(_:waits:)`` has opened, for ``adopt(_:)``.
    package struct Prepared: Sendable {
        fileprivate let plan: Plan?
        fileprivate let opened: [Destination: AuditWriter]
    }

    private struct State {
        var writers: [Destination: AuditWriter] = [:]
        var key: String?
        /// The end of destinations that a reload has removed.
        var ending: [Task<Void, Never>] = []
    }

    /// How long a destination that a reload has removed may write what waits.
    private static let endLimit = Duration.seconds(5)

    private let clock: Clock
    private let logger: Logger
    private let total = LostEvents()
    private let state = Lock(State())

    /// A log without destinations.
    package init(clock: Clock, logger: Logger) {
        self.clock = clock
        self.logger = logger
    }

    /// The events that were lost since the process started.
    package var lost: Int { total.count }

    /// Opens the destinations that are new; nothing is written.
    /// - Parameter waits: whether another process may still write the file.
    /// - Throws: `audit.file_` codes.
    package func prepare(_ plan: Plan?, waits: Bool = false) throws(AuditError) -> Prepared {
        let known = state.withLock { $0.writers }
        var opened: [Destination: AuditWriter] = [:]
        if let plan {
            for (destination, make) in plan.sinks where known[destination] == nil {
                opened[destination] = try AuditWriter(
                    make(clock), key: plan.key, waits: waits, total: total, clock: clock, logger: logger)
            }
        }
        return Prepared(plan: plan, opened: opened)
    }

    fileprivate static var hostName: String {
        var name = [UInt8](repeating: 0, count: 256)
        let status = unsafe name.withUnsafeMutableBytes { bytes in
            guard let start = bytes.baseAddress else { return Int32(-1) }
            return unsafe gethostname(start.assumingMemoryBound(to: CChar.self), bytes.count - 1)
        }
        return status == 0 ? String(decoding: name.prefix { $0 != 0 }, as: UTF8.self) : ""
    }

    /// Writes to these destinations from now on; those that are not among them end.
    package func adopt(_ prepared: Prepared) {
        let wanted = Set(prepared.plan?.destinations ?? [])
        let (removed, kept, isNewKey) = state.withLock { state in
            let removed = state.writers.filter { !wanted.contains($0.key) }.map(\.value)
            let kept = state.writers.filter { wanted.contains($0.key) }
            let isNewKey = state.key != prepared.plan?.key.name
            state.writers = kept.merging(prepared.opened) { kept, _ in kept }
            state.key = prepared.plan?.key.name
            return (removed, kept.map(\.value), isNewKey)
        }
        if let key = prepared.plan?.key, isNewKey { for writer in kept { writer.replace(key) } }
        for writer in prepared.opened.values { writer.run() }
        guard !removed.isEmpty else { return }
        let task = Task { for writer in removed { await writer.end(within: Self.endLimit) } }
        state.withLock { $0.ending.append(task) }
    }

    /// Gives an event to each destination; never waits.
    package func record(_ event: AuditEvent) {
        let writers = state.withLock { $0.writers }
        guard !writers.isEmpty else { return }
        let body = event.body(at: clock.unixMilliseconds)
        for writer in writers.values { writer.add(body) }
    }

    /// Goes on in the file that the path names now, after the old one was moved.
    package func reopen() {
        for writer in state.withLock({ $0.writers }).values { writer.reopen() }
    }

    /// Writes what waits and the last heads; what is not written after the limit is lost.
    package func end(within limit: Duration) async {
        let (writers, ending) = state.withLock { state in
            let writers = Array(state.writers.values)
            state.writers = [:]
            return (writers, state.ending)
        }
        await withTaskGroup(of: Void.self) { group in
            for writer in writers { group.addTask { await writer.end(within: limit) } }
        }
        for task in ending { await task.value }
    }
}
