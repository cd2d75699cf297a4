private import CLinux
internal import MartletConfig
package import MartletCore
internal import MartletHTTP
internal import MartletHTTP2
package import MartletIO
internal import MartletRouter

/// One event loop: a thread with its own poller, connections, upstream pools, token tables and counters; loops share
/// nothing.
///
/// The folders of this module follow the life of a request, and its files the order of `LifeOfARequest.md`:
/// `EventLoop+Accept` (listener), `EventLoop+Downstream` (codec), `EventLoop+Admission` (router, authenticator,
/// policy), `EventLoop+Forwarding` (header injection), `EventLoop+Endpoints` and `EventLoop+Upstream` (upstream),
/// `EventLoop+Response`, `EventLoop+Completion` (access log, always).
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

    let id: Int
    let mailbox: Mailbox
    let verifier: Verifier
    /// Threads for the expensive steps of TLS handshakes.
    let handshakePool: ThreadPool
    var handshakeQueue = HandshakeQueue()
    let connections: ConnectionLimit
    let accessLog: any AccessLogging
    var logFormat: AccessFormat
    let debug: DebugLog
    let clock: Clock

    var snapshot: Snapshot
    /// Counts configurations and log formats: the log caches formatted texts under it.
    var textEpoch = 0
    let reservedDescriptor = ReservedDescriptor()
    var listeners: [ListenerSocket] = []
    let poller: Poller
    var timerWheel: TimerWheel
    var due: [TimerWheel.Entry] = []

    var downstreams = Slab<DownstreamConnection>()
    var exchanges = Slab<Exchange>()
    var upstreams = Slab<UpstreamConnection>()
    var tunnels = Slab<Tunnel>()
    /// Decides when listeners defer accepting.
    var deferAccept = DeferAcceptPolicy()
    /// The downstream connections, oldest first.
    var acceptOrder = ConnectionOrder()
    /// Connections whose final request is in progress, and which are not registered with the poller yet.
    var deferredRegistrations = FIFO<DeferredRegistration>()
    /// When exchanges were last checked for expired credentials.
    var expiryCheckedAt: Int64 = 0
    /// Connections to resume before the next wait.
    var ready: [EventToken] = []
    /// HTTP/2 connections that may have frames to write.
    var dirty: [EventToken] = []
    /// Sessions of connections that were closed in this iteration.
    var closedSessions: [HTTP2Session] = []
    /// The memory of all HTTP/2 sessions of the loop.
    let http2Memory = HTTP2MemoryPool()

    var directory = UpstreamDirectory()
    /// Decides who may pass.
    var authenticator: Authenticator
    var counters = Counters()
    /// For each route of the snapshot, its index in the counters.
    var routeSlots: [Int32] = []
    var records = AccessRecords()

    // Scratch space of the thread, reused for every request.
    var head: RequestHead
    var response: ResponseHead
    let receiveBuffer = ReceiveBuffer()
    var staging = ByteBuffer(capacity: 128 * 1024)
    /// The last decrypted bytes, or the next to encrypt.
    var plaintext = ByteBuffer(capacity: 64 * 1024)
    /// Pipes for splicing long bodies.
    var pipes = SplicePipes()
    var normalizedPath = ByteBuffer(capacity: 8 * 1024)
    var requestIDText = ByteBuffer(capacity: 64)
    var dateText = ByteBuffer(capacity: 64)
    private var dateSecond: Int64 = -1

    /// The monotonic clock, read once per batch, in nanoseconds.
    var now: Int64
    /// The wall clock, read once per batch, in seconds.
    var unixTime: Int64
    /// Both of them.
    var time: LoopTime { LoopTime(monotonic: now, unix: unixTime) }
    var idPrefix: UInt64
    var idCount: UInt64 = 0

    /// When a drain aborts what is left; `max` while serving.
    var drainDeadline = Int64.max
    var isDraining: Bool { drainDeadline != .max }

    /// Builds a loop; ``run()`` starts it.
    package init(_ setup: Setup) throws(IOError) {
        let created = try Poller()
        try created.add(setup.mailbox.descriptor, .readable, token: EventToken(.mailbox, index: 0).raw)
        for listener in setup.listeners { try listener.register(with: created) }
        id = setup.id
        mailbox = setup.mailbox
        verifier = setup.verifier
        handshakePool = setup.handshakes
        connections = setup.connections
        accessLog = setup.log
        logFormat = setup.log.format
        debug = setup.debug
        clock = setup.clock
        snapshot = setup.snapshot
        poller = created
        now = setup.clock.monotonicTime.nanoseconds
        unixTime = setup.clock.unixTime.seconds
        timerWheel = TimerWheel(now: MonotonicTime(nanoseconds: now))
        authenticator = Authenticator(setup.snapshot)
        head = RequestHead(maximumFields: setup.snapshot.limits.headerFields)
        response = ResponseHead(maximumFields: 256)
        idPrefix = .random(in: .min ... .max)
        directory.adopt(setup.snapshot, resolved: setup.resolved)
        listeners = setup.listeners
        assignRouteSlots()
        readClocks()
    }

    /// Serves until a drain is over.
    package mutating func run() {
        while true {
            let idle: Int32 = isQuiet ? expiryCheckWait : min(50, deferredRegistrationWait)
            let isIdle = ready.isEmpty && handshakeQueue.isEmpty && authenticator.isIdle
            let timeout = isIdle ? timerWheel.wait(now: now, idle: idle) : 0
            let count = poller.wait(milliseconds: timeout)
            readClocks()
            // Upstream connections first: one that was closed, or sent unsolicited bytes, must not be reused.
            for index in 0..<count { dispatch(index, ifUpstream: true) }
            for index in 0..<count { dispatch(index, ifUpstream: false) }
            resumeReady()
            if !handshakeQueue.isEmpty { advanceHandshakes() }
            verifyInline()
            sweepRevocations()
            checkExpiries()
            fireTimers()
            registerOverdue()
            updateDeferAccept()
            if !dirty.isEmpty { writeAllFrames() }
            freeClosedSessions()
            records.flush(to: accessLog, now: now, isIdle: count == 0)
            if isDraining && isDrained { break }
        }
        records.flush(to: accessLog, now: now, isIdle: true)
        mailbox.close()
    }

    /// Whether nothing but deadlines can require work.
    private var isQuiet: Bool {
        records.isEmpty && authenticator.sweep.isEmpty && deferredRegistrations.isEmpty && !deferAccept.isActive
    }

    private mutating func readClocks() {
        now = clock.monotonicTime.nanoseconds
        unixTime = clock.unixTime.seconds
        guard unixTime != dateSecond else { return }
        // After the clock was set back, cached decisions would stay valid for too long: invalidate them.
        if unixTime < dateSecond { authenticator.invalidate() }
        dateSecond = unixTime
        dateText.removeAll()
        HTTPDate(UnixTime(seconds: unixTime)).append(to: &dateText)
    }

    private mutating func dispatch(_ index: Int, ifUpstream isUpstream: Bool) {
        let token = EventToken(raw: poller.token(at: index))
        guard (token.kind == .upstream) == isUpstream else { return }
        let readiness = poller.readiness(at: index)
        switch token.kind {
        case .downstream: downstreamEvent(token, readiness)
        case .upstream: upstreamEvent(token, readiness)
        case .listener: accept(token.index)
        case .mailbox: drainMailbox()
        case nil: break
        }
    }

    /// Resumes paused connections: each gets one more turn, so that none starves the others.
    private mutating func resumeReady() {
        guard !ready.isEmpty else { return }
        let turn = ready
        ready.removeAll(keepingCapacity: true)
        for token in turn {
            switch token.kind {
            case .downstream:
                guard downstreams.contains(token.index, token.generation) else { continue }
                downstreams[token.index].isReady = false
                continueDownstream(token.index)
            case .upstream:
                guard upstreams.contains(token.index, token.generation) else { continue }
                upstreams[token.index].isReady = false
                readUpstream(token.index)
            default: break
            }
        }
    }

    /// Adds a downstream connection to the list of those to resume.
    mutating func markReady(downstream: Int32) {
        guard !downstreams[downstream].isReady else { return }
        downstreams[downstream].isReady = true
        ready.append(EventToken(.downstream, index: downstream, generation: downstreams[downstream].generation))
    }

    /// Adds an upstream connection to the list of those to resume.
    mutating func markReady(upstream: Int32) {
        guard !upstreams[upstream].isReady else { return }
        upstreams[upstream].isReady = true
        ready.append(EventToken(.upstream, index: upstream, generation: upstreams[upstream].generation))
    }

    /// Assigns every route its index in the counters.
    mutating func assignRouteSlots() {
        routeSlots = snapshot.routes.routes.map { counters.slot(of: $0.name) }
    }
}
