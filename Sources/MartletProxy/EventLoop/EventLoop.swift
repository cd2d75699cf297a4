private import CLinux
package import MartletAuthenticator
internal import MartletConfig
package import MartletCore
package import MartletDecisions
internal import MartletHTTP
package import MartletIO
internal import MartletRouter
package import MartletTracing
package import MartletUpstreams

/// One event loop: a thread with its own poller, connections, upstream pools, token tables and counters; loops share
/// nothing.
///
/// It is the highest layer of the request path: it handles events, deadlines and messages, accepts and reads clients,
/// and admits their requests. ``RequestRouter`` finds their routes and writes their heads for upstreams,
/// ``RequestForwarder`` sends them, and ``ResponseReader`` reads the responses. Each is lent ``LoopState``, the lowest
/// layer, for the call, and calls only types below it. Values without sockets decide what the layers carry out.
///
/// `LifeOfARequest.md` has the steps of a request in order, and the layers that take them.
// lint:large-type functions that borrow the loop are counted together, whatever type they stand in
package struct EventLoop: ~Copyable {
    /// The parts that a loop is made of.
    package struct Setup: Sendable {
        package let id: Int
        package let snapshot: Snapshot
        package let listeners: [ListenerSocket]
        package let resolved: [ResolvedName]
        package let mailbox: Mailbox
        package let verifier: Verifier
        package let handshakes: ThreadPool
        package let connections: ConnectionLimit
        package let log: any AccessLogging
        package let debug: DebugLog
        package let clock: Clock
        /// Gets copies of requests.
        package var mirror: (any MirrorReceiving)?
        /// Gets the spans of requests.
        package var spans: (any SpanReceiving)?
        /// What the tasks of requests are for that are handled in this process.
        package var purpose = TaskPurpose.endpoints
        /// Whether the process uses too much memory; `nil` for loops that reject nothing in an overload.
        package var memory: MemoryPressure?
        /// The mailboxes of the other loops that use the same upstreams.
        package var siblings: [Mailbox] = []
        /// Logs which endpoints are ejected.
        package var ejections: EjectionWatch?
        /// The descriptors for connections to upstreams; `nil` takes what is needed.
        package var descriptors: DescriptorBudget?

        package init(
            id: Int, snapshot: Snapshot, listeners: [ListenerSocket], resolved: [ResolvedName], mailbox: Mailbox,
            verifier: Verifier, handshakes: ThreadPool, connections: ConnectionLimit, log: any AccessLogging,
            debug: DebugLog, clock: Clock
        ) {
            self.id = id
            self.snapshot = snapshot
            self.listeners = listeners
            self.resolved = resolved
            self.mailbox = mailbox
            self.verifier = verifier
            self.handshakes = handshakes
            self.connections = connections
            self.log = log
            self.debug = debug
            self.clock = clock
        }
    }

    var loop: LoopState
    var router: RequestRouter
    var responses = ResponseReader()
    /// Decides who may pass.
    var authenticator: Authenticator
    /// Decides when credentials of exchanges in progress are checked.
    var credentialWatch = CredentialWatch()

    /// Builds a loop; ``run()`` starts it.
    package init(_ setup: Setup) throws(IOError) {
        let poller = try Poller()
        try poller.add(setup.mailbox.descriptor, .readable, token: EventToken.mailbox.raw)
        for listener in setup.listeners { try listener.register(with: poller) }
        let overload = try LoopOverload(setup.snapshot.overload, memory: setup.memory, poller)
        let clock = LoopClock(setup.clock)
        let schedule = LoopSchedule(now: clock.now)
        var tracing = LoopTracing(setup.spans, seeds: .random(in: .min ... .max), .random(in: .min ... .max))
        tracing.adopt(setup.snapshot.tracing)
        let context = LoopContext(
            snapshot: setup.snapshot, poller: poller, clock: clock, schedule: schedule,
            threads: LoopThreads(
                mailbox: setup.mailbox, verifier: setup.verifier, handshakePool: setup.handshakes,
                mirror: setup.mirror, purpose: setup.purpose, siblings: setup.siblings),
            logs: LoopLogs(
                access: setup.log, setup.snapshot.accessLog, debug: setup.debug,
                requestIDPrefix: .random(in: .min ... .max)),
            counters: Counters(loop: setup.id), overload: overload, tracing: tracing)
        let acceptor = Acceptor(connections: setup.connections, listeners: setup.listeners)
        loop = LoopState(context, acceptor: acceptor)
        loop.upstreams.descriptors = LoopDescriptors(setup.descriptors)
        loop.pipes = SplicePipes(setup.descriptors)
        router = RequestRouter(head: RequestHead(maximumFields: setup.snapshot.limits.headerFields))
        authenticator = Authenticator(setup.snapshot.authentication)
        loop.upstreams.directory.ejections = setup.ejections.map { LoopEjections(watch: $0, loop: setup.id) }
        loop.upstreams.directory.adopt(setup.snapshot, resolved: setup.resolved, now: loop.now)
        loop.context.counters.assignSlots(toRoutes: setup.snapshot.routes.routes.map(\.name))
        loop.context.counters.peers.adopt(loop.upstreams.directory, setup.snapshot)
    }

    /// Serves until a drain is over.
    package mutating func run() {
        while true {
            let timeout = hasWork ? 0 : loop.context.schedule.wait(now: loop.now, idle: idleWait)
            let count = loop.context.poller.wait(milliseconds: timeout)
            // After the clock was set back, cached decisions would stay valid for too long.
            if loop.context.clock.read() { authenticator.invalidate() }
            if loop.context.overload.isWatched { loop.context.overload.begin(at: loop.now, slept: timeout != 0) }
            // Upstream connections first: one that was closed, or sent unsolicited bytes, must not be reused.
            for index in 0..<count { dispatch(index, ifUpstream: true) }
            for index in 0..<count { dispatch(index, ifUpstream: false) }
            resumeReady()
            if !loop.context.threads.handshakeQueue.isEmpty { advanceHandshakes() }
            if !authenticator.isIdle { verifyInline() }
            credentialWatch.sweepRevocations(&loop.exchanges, &authenticator, &loop.context)
            checkExpiries()
            fireTimers()
            if !loop.waiting.isEmpty { RequestForwarder.resumeWaiting(&loop) }
            if loop.now >= loop.upstreams.directory.nextCut { RequestForwarder.cutOverdue(&loop) }
            loop.registerOverdue()
            loop.downstreams.updateDeferAccept(&loop.context)
            loop.downstreams.resumeAccepting(&loop.context)
            if !loop.context.schedule.dirty.isEmpty { writeAllFrames() }
            if loop.context.overload.isWatched { OverloadControl.end(&loop, events: count) }
            loop.context.schedule.freeClosedSessions()
            loop.exchanges.releaseTokens(&authenticator)
            // Until here no slot of what has ended has a new owner, so that `isAlive` alone tells after a call whether
            // that has closed a connection or ended an exchange.
            loop.downstreams.all.reclaim()
            loop.exchanges.all.reclaim()
            loop.upstreams.all.reclaim()
            loop.exchanges.tunnels.reclaim()
            loop.context.logs.access.flush(now: loop.now, isIdle: count == 0)
            if loop.context.tracing.isOn { loop.context.tracing.flush() }
            if loop.isDraining && isDrained { break }
        }
        loop.context.logs.access.flush(now: loop.now, isIdle: true)
        loop.mailbox.close()
    }

    /// Whether there is work to do before the next event.
    private var hasWork: Bool {
        !loop.context.schedule.ready.isEmpty || !loop.context.threads.handshakeQueue.isEmpty || !authenticator.isIdle
    }

    /// How long the loop may sleep without timers, in milliseconds.
    private var idleWait: Int32 {
        let wait =
            isQuiet
            ? CredentialWatch.wait(exchanges: loop.exchanges.all.count)
            : min(
                50, loop.downstreams.acceptor.registrationWait(at: loop.now),
                authenticator.hasUnsweptRevocations ? authenticator.sweepWait(at: loop.time) : 50)
        return loop.waiting.isEmpty ? wait : loop.waiting.wait(at: loop.now, idle: wait < 0 ? 1000 : wait)
    }

    /// Whether nothing but deadlines can require work.
    private var isQuiet: Bool {
        loop.context.logs.access.isEmpty && !authenticator.hasUnsweptRevocations && loop.downstreams.acceptor.isQuiet
    }

    private mutating func dispatch(_ index: Int, ifUpstream isUpstream: Bool) {
        let token = EventToken(raw: loop.context.poller.token(at: index))
        guard (token.kind == .upstream) == isUpstream else { return }
        let readiness = loop.context.poller.readiness(at: index)
        switch token.kind {
        case .downstream: downstreamEvent(token.downstream, readiness)
        case .upstream: responses.upstreamEvent(token.upstream, readiness, &loop)
        case .listener: accept(token.listener)
        case .mailbox: drainMailbox()
        case .delayProbe: loop.context.overload.probeArrived(at: loop.now)
        case nil: break
        }
    }

    /// Resumes paused connections: each gets one more turn, so that none starves the others.
    private mutating func resumeReady() {
        guard !loop.context.schedule.ready.isEmpty else { return }
        for index in 0..<loop.context.schedule.ready.start() {
            let token = loop.context.schedule.ready[index]
            switch token.kind {
            case .downstream:
                guard loop.downstreams.all.contains(token.downstream) else { continue }
                loop.downstreams[token.downstream].isReady = false
                continueDownstream(token.downstream)
            case .upstream:
                guard loop.upstreams.all.contains(token.upstream) else { continue }
                loop.upstreams[token.upstream].isReady = false
                responses.readUpstream(token.upstream, &loop)
            default: break
            }
        }
    }
}
