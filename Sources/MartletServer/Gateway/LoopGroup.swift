internal import MartletCore
internal import MartletIO
internal import MartletProxy
private import Synchronization

/// The event loops that serve one kind of listener, each on its thread.
final class LoopGroup: Sendable {
    private let mailboxes: [Mailbox]
    private let running: Mutex<[SystemThread]>
    private let names: String

    /// Builds the loops and starts their threads.
    /// - Parameters:
    ///   - name: what their threads are called.
    ///   - sockets: for every loop, what it accepts from.
    ///   - connections: where the loops count their clients together.
    ///   - log: where access records go; `nil` is where everything goes.
    init(
        _ name: String, snapshot: Snapshot, sockets: [[ListenerSocket]], resolved: [ResolvedName], services: Services,
        connections: ConnectionLimit, log: (any AccessLogging)? = nil
    ) throws(StartError) {
        names = name
        running = Mutex([])
        var mailboxes: [Mailbox] = []
        var threads: [SystemThread] = []
        do {
            for (index, listeners) in sockets.enumerated() {
                let mailbox = try Mailbox()
                mailboxes.append(mailbox)
                let setup = Worker.Setup(
                    id: index, snapshot: snapshot, listeners: listeners, resolved: resolved, mailbox: mailbox,
                    verifier: services.verifier, handshakes: services.handshakes, connections: connections,
                    log: log ?? services.sink, debug: DebugLog(services.logger.with(("room", "proxy"))),
                    clock: services.clock)
                let started = Completion()
                threads.append(try SystemThread(name: "\(name)-\(index)") { LoopGroup.run(setup, started) })
                guard started.wait() == .ok else { throw LoopFailure() }
            }
        } catch {
            for mailbox in mailboxes { mailbox.drain(until: services.clock.monotonicTime) }
            throw StartError(code: "server.loop_not_started", message: "\(error)", exit: .internalFault)
        }
        self.mailboxes = mailboxes
        running.withLock { $0 = threads }
    }

    /// The whole life of a loop's thread.
    private static func run(_ setup: Worker.Setup, _ started: Completion) {
        do {
            var worker = try Worker(setup)
            started.finish(.ok)
            worker.run()
        } catch {
            started.finish(.internalFault)
        }
    }

    /// A loop had no poller, or could not watch its listeners.
    private struct LoopFailure: Error, CustomStringConvertible {
        var description: String { "an event loop could not be set up" }
    }

    var count: Int { mailboxes.count }

    /// Gives every loop a new configuration.
    func adopt(_ snapshot: Snapshot, sockets: [[ListenerSocket]]) {
        for (mailbox, listeners) in zip(mailboxes, sockets) { mailbox.adopt(snapshot, listeners: listeners) }
    }

    /// Tells every loop the addresses of host names.
    func resolved(_ names: [ResolvedName]) {
        for mailbox in mailboxes { mailbox.resolved(names) }
    }

    /// Has every loop forget its verdicts.
    func forget() {
        for mailbox in mailboxes { mailbox.forget() }
    }

    /// Has every loop forget its copies of sessions that have ended, and of subjects who have changed.
    func revoked(_ numbers: [UInt64]) {
        for mailbox in mailboxes { mailbox.revoked(numbers) }
    }

    /// The same, and waits until every loop has.
    /// - Returns: whether all had before the deadline.
    func revoked(_ numbers: [UInt64], within patience: Duration) async -> Bool {
        let acknowledgement = LoopAcknowledgement(loops: mailboxes.count)
        for mailbox in mailboxes { mailbox.revoked(numbers, acknowledgement) }
        return await acknowledgement.wait(within: patience)
    }

    /// Tells every loop whether sessions are refused.
    func refuseSessions(_ refuses: Bool) {
        for mailbox in mailboxes { mailbox.refuseSessions(refuses) }
    }

    /// Has every loop write access lines in the format that the log has now.
    func logFormatChanged() {
        for mailbox in mailboxes { mailbox.logFormatChanged() }
    }

    /// Ends every loop once its clients are served, at the deadline at the latest.
    ///
    /// - Parameter hasHeir: whether another process accepts from the same sockets.
    func drain(until deadline: MonotonicTime, hasHeir: Bool = false) {
        for mailbox in mailboxes { mailbox.drain(until: deadline, hasHeir: hasHeir) }
    }

    /// Waits until every loop has ended.
    func join() async {
        let threads = running.withLock { threads in
            let all = threads
            threads = []
            return all
        }
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            let waiter = try? SystemThread(name: "martlet-join") {
                for thread in threads { thread.join() }
                done.resume()
            }
            if waiter == nil { done.resume() }
        }
    }

    /// The counters of the loops that answer within a second.
    func reports() async -> [LoopReport] {
        await withTaskGroup(of: LoopReport?.self) { group in
            for mailbox in mailboxes { group.addTask { await mailbox.report(within: .seconds(1)) } }
            var reports: [LoopReport] = []
            for await report in group { if let report { reports.append(report) } }
            return reports.sorted { $0.loop < $1.loop }
        }
    }
}
