private import CLinux
package import MartletAuthenticator
internal import MartletConfig
package import MartletCore
internal import MartletHTTP
package import MartletIO
internal import MartletRouter

// lint:large-type the driver of a request concerns both sides; what it decides is in values (decision 026)
/// One event loop: a thread with its own poller, connections, upstream pools, token tables and counters; loops share
/// nothing.
///
/// Values without sockets decide; the loop carries out what they return. The folders of this module follow the life of
/// a request, and its files the order of `LifeOfARequest.md`, here with the types that decide for them:
/// `EventLoop+Accept` (`Acceptor`), `EventLoop+Downstream` (`RequestParser`), `EventLoop+RequestStart`,
/// `EventLoop+Admission` (`RouteTable`, `Authenticator`), `EventLoop+Verification` for credentials that are not cached,
/// `EventLoop+Forwarding` (`UpstreamHeadWriter`), `EventLoop+Endpoints` (`UpstreamDirectory`, `FailedAttempt`),
/// `EventLoop+Upstream` (`UpstreamFailureKind`, `UpstreamEnd`), `EventLoop+RequestBody` (`RequestBody`),
/// `EventLoop+Response` (`UpstreamResponse`, `ResponseHeadWriter`), `EventLoop+ResponseBody` (`ResponseState`),
/// `EventLoop+Completion` for the access log, and `EventLoop+DownstreamClose` (`ConnectionEnding`, `HalfClose`).
///
/// An upgrade continues in `EventLoop+Tunnels` (`Tunnel`); an exchange that outlives its credential ends in
/// `EventLoop+Expiry` (`CredentialTermination`).
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

    /// Above this many buffered output bytes the side that produces them is paused.
    static let highWatermark = 256 * 1024
    /// Below it, reading resumes.
    static let lowWatermark = 64 * 1024

    /// The current configuration.
    var snapshot: Snapshot
    let poller: Poller
    var clock: LoopClock
    var schedule: LoopSchedule
    var threads: LoopThreads
    var logs: LoopLogs
    var counters: Counters

    var downstreams = Slab<DownstreamConnection>()
    var exchanges = Slab<Exchange>()
    var upstreams = Slab<UpstreamConnection>()
    var tunnels = Slab<Tunnel>()

    /// Decides which connections are admitted.
    var acceptor: Acceptor
    /// Decides who may pass.
    var authenticator: Authenticator
    /// Decides when credentials of exchanges in progress are checked.
    var credentialWatch = CredentialWatch()
    /// Decides which endpoint gets a request.
    var directory = UpstreamDirectory()

    // Scratch space of the thread, reused for every request.
    var head: RequestHead
    var response: ResponseHead
    var staging = ByteBuffer(capacity: 128 * 1024)
    /// The last decrypted bytes, or the next to encrypt.
    var plaintext = ByteBuffer(capacity: 64 * 1024)
    var scratch = LoopScratch()

    /// Builds a loop; ``run()`` starts it.
    package init(_ setup: Setup) throws(IOError) {
        let poller = try Poller()
        try poller.add(setup.mailbox.descriptor, .readable, token: EventToken.mailbox.raw)
        for listener in setup.listeners { try listener.register(with: poller) }
        let clock = LoopClock(setup.clock)
        schedule = LoopSchedule(now: clock.now)
        self.poller = poller
        self.clock = clock
        snapshot = setup.snapshot
        threads = LoopThreads(mailbox: setup.mailbox, verifier: setup.verifier, handshakePool: setup.handshakes)
        logs = LoopLogs(access: setup.log, debug: setup.debug, requestIDPrefix: .random(in: .min ... .max))
        counters = Counters(loop: setup.id)
        acceptor = Acceptor(connections: setup.connections, listeners: setup.listeners)
        authenticator = Authenticator(setup.snapshot.authentication)
        head = RequestHead(maximumFields: setup.snapshot.limits.headerFields)
        response = ResponseHead(maximumFields: 256)
        directory.adopt(setup.snapshot, resolved: setup.resolved)
        counters.assignSlots(toRoutes: setup.snapshot.routes.routes.map(\.name))
    }

    /// Serves until a drain is over.
    package mutating func run() {
        while true {
            let timeout = hasWork ? 0 : schedule.wait(now: now, idle: idleWait)
            let count = poller.wait(milliseconds: timeout)
            readClocks()
            // Upstream connections first: one that was closed, or sent unsolicited bytes, must not be reused.
            for index in 0..<count { dispatch(index, ifUpstream: true) }
            for index in 0..<count { dispatch(index, ifUpstream: false) }
            resumeReady()
            if !threads.handshakeQueue.isEmpty { advanceHandshakes() }
            verifyInline()
            sweepRevocations()
            checkExpiries()
            fireTimers()
            registerOverdue()
            updateDeferAccept()
            if !schedule.dirty.isEmpty { writeAllFrames() }
            freeClosedSessions()
            reclaimSlots()
            logs.access.flush(now: now, isIdle: count == 0)
            if isDraining && isDrained { break }
        }
        logs.access.flush(now: now, isIdle: true)
        mailbox.close()
    }

    /// Whether there is work to do before the next event.
    private var hasWork: Bool { schedule.hasReady || !threads.handshakeQueue.isEmpty || !authenticator.isIdle }

    /// How long the loop may sleep without timers, in milliseconds.
    private var idleWait: Int32 {
        isQuiet ? CredentialWatch.wait(exchanges: exchanges.count) : min(50, acceptor.registrationWait(at: now))
    }

    /// Whether nothing but deadlines can require work.
    private var isQuiet: Bool { logs.access.isEmpty && !authenticator.hasUnsweptRevocations && acceptor.isQuiet }

    private mutating func readClocks() {
        // After the clock was set back, cached decisions would stay valid for too long: invalidate them.
        if clock.read() { authenticator.invalidate() }
    }

    private mutating func dispatch(_ index: Int, ifUpstream isUpstream: Bool) {
        let token = EventToken(raw: poller.token(at: index))
        guard (token.kind == .upstream) == isUpstream else { return }
        let readiness = poller.readiness(at: index)
        switch token.kind {
        case .downstream: downstreamEvent(token.downstream, readiness)
        case .upstream: upstreamEvent(token.upstream, readiness)
        case .listener: accept(token.listener)
        case .mailbox: drainMailbox()
        case nil: break
        }
    }

    /// Frees the slots of what ended in this iteration: until here none has a new owner, so that `isAlive` alone tells
    /// after a call whether that has closed a connection or ended an exchange.
    private mutating func reclaimSlots() {
        downstreams.reclaim()
        exchanges.reclaim()
        upstreams.reclaim()
        tunnels.reclaim()
    }

    /// Resumes paused connections: each gets one more turn, so that none starves the others.
    private mutating func resumeReady() {
        guard schedule.hasReady else { return }
        for token in schedule.takeReady() {
            switch token.kind {
            case .downstream:
                guard downstreams.contains(token.downstream) else { continue }
                downstreams[token.downstream].isReady = false
                continueDownstream(token.downstream)
            case .upstream:
                guard upstreams.contains(token.upstream) else { continue }
                upstreams[token.upstream].isReady = false
                readUpstream(token.upstream)
            default: break
            }
        }
    }

    /// Adds a downstream connection to the list of those to resume.
    mutating func markReady(downstream: Handle<DownstreamConnection>) {
        guard !downstreams[downstream].isReady else { return }
        downstreams[downstream].isReady = true
        schedule.markReady(EventToken(downstream: downstream))
    }

    /// Adds an upstream connection to the list of those to resume.
    mutating func markReady(upstream: Handle<UpstreamConnection>) {
        guard !upstreams[upstream].isReady else { return }
        upstreams[upstream].isReady = true
        schedule.markReady(EventToken(upstream: upstream))
    }
}

// What many files use of the loop's parts.
extension EventLoop {
    /// The monotonic clock, read once per batch, in nanoseconds.
    @inline(__always)
    var now: Int64 { clock.now }

    /// The wall clock, read once per batch, in seconds.
    @inline(__always)
    var unixTime: Int64 { clock.unixTime }

    /// Both of them.
    @inline(__always)
    var time: LoopTime { clock.time }

    var mailbox: Mailbox { threads.mailbox }

    var verifier: Verifier { threads.verifier }

    var debug: DebugLog { logs.debug }

    @inline(__always)
    var isDraining: Bool { schedule.isDraining }

    /// When a drain aborts what is left; `max` while serving.
    var drainDeadline: Int64 { schedule.drainDeadline }

    var receiveBuffer: ReceiveBuffer {
        @inline(__always) _read { yield scratch.receiveBuffer }
    }

    var pipes: SplicePipes {
        @inline(__always) _read { yield scratch.pipes }
        @inline(__always) _modify { yield &scratch.pipes }
    }
}
