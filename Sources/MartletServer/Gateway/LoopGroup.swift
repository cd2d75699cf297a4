internal import MartletAuthenticator
package import MartletCore
package import MartletDecisions
internal import MartletIO
package import MartletProxy
internal import MartletResponder
package import MartletTracing
package import MartletUpstreams

/// The event loops that serve one kind of listener, each on its own thread.
package final class LoopGroup: Sendable {
    private let mailboxes: [Mailbox]
    private let running: Lock<[SystemThread]>
    private let names: String

    /// Builds the loops and starts their threads.
    /// - Parameters:
    ///   - name: the prefix of the thread names.
    ///   - sockets: the listener sockets of every loop.
    ///   - mirrors: what gets copies of requests; `nil` for none.
    ///   - spans: what gets the spans of requests; `nil` for none.
    ///   - connections: the connection limit that the loops share.
    ///   - isForOperators: whether it serves in an overload, too.
    ///   - log: the access log; `nil` means the sink of all log lines.
    package init(
        _ name: String, snapshot: Snapshot, sockets: [[ListenerSocket]], resolved: [ResolvedName], services: Services,
        mirrors: (any MirrorReceiving)? = nil, spans: (any SpanReceiving)? = nil, connections: ConnectionLimit,
        log: (any AccessLogging)? = nil,
        isForOperators: Bool = false
    ) throws(StartError) {
        names = name
        running = Lock([])
        var mailboxes: [Mailbox] = []
        var threads: [SystemThread] = []
        let logger = services.logger.with(("component", "proxy"))
        let warnings = PeerWarnings(logger)
        do {
            for _ in sockets { mailboxes.append(try Mailbox()) }
            for (index, listeners) in sockets.enumerated() {
                let mailbox = mailboxes[index]
                var setup = EventLoop.Setup(
                    id: index, snapshot: snapshot, listeners: listeners, resolved: resolved, mailbox: mailbox,
                    verifier: services.verifier, handshakes: services.handshakes, connections: connections,
                    log: log ?? services.sink, debug: DebugLog(logger, warnings: warnings),
                    clock: services.clock)
                setup.mirror = mirrors
                setup.spans = spans
                setup.descriptors = services.descriptors
                setup.siblings = mailboxes.filter { $0 !== mailbox }
                if isForOperators {
                    setup.purpose = .operators
                } else {
                    (setup.memory, setup.ejections) = (services.memory, services.ejections)
                }
                let started = try Completion()
                threads.append(try SystemThread(name: "\(name)-\(index)") { [setup] in LoopGroup.run(setup, started) })
                guard started.wait() == .ok else { throw LoopSetupError() }
            }
        } catch {
            let now = services.clock.monotonicTime
            for mailbox in mailboxes { mailbox.post(.drain(until: now, hasSuccessor: false)) }
            throw StartError(code: "server.loop_not_started", message: "\(error)", exit: .internalFault)
        }
        self.mailboxes = mailboxes
        running.withLock { $0 = threads }
    }

    private static func run(_ setup: EventLoop.Setup, _ started: Completion) {
        do {
            var worker = try EventLoop(setup)
            started.finish(.ok)
            worker.run()
        } catch {
            started.finish(.internalFault)
        }
    }

    /// A loop could not create its poller or register its listeners.
    private struct LoopSetupError: Error, CustomStringConvertible {
        var description: String { "event loop could not be set up" }
    }

    var count: Int { mailboxes.count }

    /// The loops as the watchdog sees them.
    /// - Parameter listeners: the sockets that it serves where such a loop does not.
    func watched(serving listeners: [Int32] = []) -> [Watchdog.Watched] {
        mailboxes.enumerated().map { index, mailbox in
            Watchdog.Watched(
                name: "\(names)-\(index)", turns: { mailbox.turns }, wake: { mailbox.wake() }, listeners: listeners)
        }
    }

    /// Sends every loop a message.
    package func post(_ message: LoopMessage) {
        for mailbox in mailboxes { mailbox.post(message) }
    }

    /// Sends every loop a message, and waits until all have acknowledged it.
    /// - Returns: whether they did before the timeout.
    func postAndWait(within timeout: Duration, _ message: (LoopAcknowledgement) -> LoopMessage) async -> Bool {
        let acknowledgement = LoopAcknowledgement(loops: mailboxes.count)
        post(message(acknowledgement))
        return await acknowledgement.wait(within: timeout)
    }

    /// Sends every loop a new configuration, with the sockets of its own, and the addresses of host names.
    func adopt(_ snapshot: Snapshot, sockets: [[ListenerSocket]], _ names: [ResolvedName] = []) {
        for (mailbox, listeners) in zip(mailboxes, sockets) {
            mailbox.post(.adopt(snapshot, listeners: listeners), .resolved(names))
        }
    }

    /// Ends every loop when its requests are served, at the latest at the deadline.
    ///
    /// - Parameter hasSuccessor: whether another process accepts from the same sockets and their queues.
    package func drain(until deadline: MonotonicTime, hasSuccessor: Bool = false) {
        post(.drain(until: deadline, hasSuccessor: hasSuccessor))
    }

    /// Waits until every loop has ended.
    /// - Parameter limit: how long; a loop that stands still never ends.
    /// - Returns: whether they have.
    @discardableResult
    package func join(within limit: Duration = .seconds(3600)) async -> Bool {
        let threads = running.withLock { threads in
            let all = threads
            threads = []
            return all
        }
        let end = OnceOnly<Bool>()
        let waiter = try? SystemThread(name: "martlet-join") {
            for thread in threads { thread.join() }
            end.complete(true)
        }
        guard waiter != nil else { return false }
        return await end.value(within: limit) ?? false
    }

    /// The counters of the loops that respond within a second.
    /// - Parameter withEndpoints: whether the state of every endpoint is among them.
    func reports(withEndpoints: Bool) async -> [LoopReport] {
        await withTaskGroup(of: LoopReport?.self) { group in
            for mailbox in mailboxes {
                group.addTask {
                    let reply = OnceOnly<LoopReport>()
                    mailbox.post(.report(withEndpoints: withEndpoints) { reply.complete($0) })
                    return await reply.value(within: .seconds(1))
                }
            }
            var reports: [LoopReport] = []
            for await report in group { if let report { reports.append(report) } }
            return reports.sorted { $0.loop < $1.loop }
        }
    }
}
