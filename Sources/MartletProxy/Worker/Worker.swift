private import CLinux
internal import MartletConfig
package import MartletCore
internal import MartletHTTP
package import MartletIO
internal import MartletRouter

/// One event loop: a thread with its own poller, connections, upstream pools, token tables and counters.
///
/// Nothing is shared.
///
/// A request goes through the files of this folder in the order of `LifeOfARequest.md`: `Worker+Arrivals` (listener),
/// `Worker+Clients` (codec), `Worker+Admission` (router, authenticator, policy), `Worker+Forwarding` (header injection, upstream),
/// `Worker+Links` and `Worker+Answers` (response), `Worker+Finish` (access log, always).
package struct Worker: ~Copyable {
    /// What a loop is made from.
    package struct Setup: Sendable {
        package let id: Int
        package let snapshot: Snapshot
        package let listeners: [ListenerSocket]
        package let resolved: [ResolvedName]
        package let mailbox: Mailbox
        package let verifier: Verifier
        package let handshakes: WorkPool
        package let connections: ConnectionLimit
        package let log: any AccessLogging
        package let debug: DebugLog
        package let clock: Clock

        package init(
            id: Int, snapshot: Snapshot, listeners: [ListenerSocket], resolved: [ResolvedName], mailbox: Mailbox,
            verifier: Verifier, handshakes: WorkPool, connections: ConnectionLimit, log: any AccessLogging,
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

    /// Above this much waiting output the side that fills it is not read any more.
    static let highWater = 256 * 1024
    /// Below it, reading goes on.
    static let lowWater = 64 * 1024
    private static let tokenBytes = 64 * 1024 * 1024

    let id: Int
    let mailbox: Mailbox
    let verifier: Verifier
    /// Threads for what a TLS handshake costs.
    let handshakes: WorkPool
    /// What is to be done for handshakes on this loop.
    var handshaking = HandshakeQueue()
    let connections: ConnectionLimit
    let accessLog: any AccessLogging
    var logFormat: AccessFormat
    let debug: DebugLog
    let clock: Clock

    var snapshot: Snapshot
    /// Counts the configurations; tells apart what indices refer to.
    var epoch = 0
    let reserve = ReservedDescriptor()
    var listeners: [ListenerSocket] = []
    let poller: Poller
    var wheel: TimerWheel
    var due: [TimerWheel.Entry] = []

    var clients = Slab<Client>()
    var exchanges = Slab<Exchange>()
    var links = Slab<Link>()
    var tunnels = Slab<Tunnel>()
    /// Tells whether clients come in numbers for one request each.
    var singleUse = SingleUseMeter()
    /// The connections of clients, oldest first.
    var order = ConnectionOrder()
    /// Clients that will ask no more and whose answers are not due yet.
    var unwatched = FIFO<Unwatched>()
    /// When exchanges were last looked through for those that end.
    var watchedAt: Int64 = 0
    /// Tokens of long exchanges, by their places.
    var heldTokens: [Int32: HeldToken] = [:]
    /// The store is to be asked about some of them.
    var hasDoubts = false
    /// Clients and links to go on with before the next wait.
    var ready: [EventToken] = []
    /// HTTP/2 connections that may have frames to write.
    var dirty: [EventToken] = []

    var upstreams = UpstreamDirectory()
    var grants: TokenTable<Grant>
    var principals: TokenTable<ProvenPrincipal>
    /// Keys the digests by which pairs of name and password are remembered.
    let pairKey = Secret((0..<32).map { _ in UInt8.random(in: .min ... .max) })
    var pairDigest = ByteBuffer(capacity: 32)
    /// Credentials that the loop judges itself.
    var ownJudge = LoopJudge()
    /// What was revoked lately, and when: no verdict that was asked for before is believed.
    var revoked: [UInt64: Int64] = [:]
    var prunedAt: Int64 = 0
    /// Those whose copies are still to be dropped.
    var sweep = RevocationSweep()
    /// The store is down, and the configuration says that no session goes on then.
    var sessionsAreRefused = false
    var counters = Counters()
    /// For each route of the snapshot, its place in the counters.
    var slotOfRoute: [Int32] = []
    var records = AccessRecords()

    // Scratch space of the thread, reused for every request.
    var head: RequestHead
    var answer: ResponseHead
    let receiveBuffer = ReceiveBuffer()
    var staging = ByteBuffer(capacity: 128 * 1024)
    /// What was decrypted last, or is to be encrypted next.
    var plain = ByteBuffer(capacity: 64 * 1024)
    /// What long bodies go through.
    var pipes = SplicePipes()
    var path = ByteBuffer(capacity: 8 * 1024)
    var block = ByteBuffer(capacity: 4 * 1024)
    var idText = ByteBuffer(capacity: 64)
    var dateText = ByteBuffer(capacity: 64)
    private var dateSecond: Int64 = -1

    /// The monotonic clock, read once per batch, in nanoseconds.
    var now: Int64
    /// The wall clock, read once per batch, in seconds.
    var unixTime: Int64
    var idPrefix: UInt64
    var idCount: UInt64 = 0

    /// When a drain cuts what is left; `max` while serving.
    var drainDeadline = Int64.max
    var isDraining: Bool { drainDeadline != .max }

    /// Builds a loop; it begins with ``run()``.
    package init(_ setup: Setup) throws(IOError) {
        let created = try Poller()
        try created.add(setup.mailbox.descriptor, .readable, token: EventToken(.mailbox, index: 0).raw)
        for listener in setup.listeners { try listener.register(with: created) }
        id = setup.id
        mailbox = setup.mailbox
        verifier = setup.verifier
        handshakes = setup.handshakes
        connections = setup.connections
        accessLog = setup.log
        logFormat = setup.log.format
        debug = setup.debug
        clock = setup.clock
        snapshot = setup.snapshot
        poller = created
        now = setup.clock.monotonicTime.nanoseconds
        unixTime = setup.clock.unixTime.seconds
        wheel = TimerWheel(now: MonotonicTime(nanoseconds: now))
        grants = TokenTable(byteLimit: Worker.tokenBytes, key: (.random(in: .min ... .max), .random(in: .min ... .max)))
        principals = TokenTable(
            byteLimit: Worker.tokenBytes, key: (.random(in: .min ... .max), .random(in: .min ... .max)))
        head = RequestHead(maximumFields: setup.snapshot.limits.headerFields)
        answer = ResponseHead(maximumFields: 256)
        idPrefix = .random(in: .min ... .max)
        upstreams.adopt(setup.snapshot, resolved: setup.resolved)
        listeners = setup.listeners
        rememberRoutes()
        readClocks()
    }

    /// Serves until a drain is over.
    package mutating func run() {
        while true {
            let idle: Int32 = isQuiet ? watchPatience : min(50, unwatchedPatience)
            let isIdle = ready.isEmpty && handshaking.isEmpty && ownJudge.isIdle
            let patience = isIdle ? wheel.wait(now: now, idle: idle) : 0
            let count = poller.wait(milliseconds: patience)
            readClocks()
            // Links first: one that has ended, or says what nobody asked for, is not given another request.
            for index in 0..<count { dispatch(index, ifForLink: true) }
            for index in 0..<count { dispatch(index, ifForLink: false) }
            goOn()
            if !handshaking.isEmpty { goOnShakingHands() }
            judgeWaiting()
            sweepRevoked()
            watchExchanges()
            expire()
            watchOverdue()
            meterConnections()
            if !dirty.isEmpty { pumpAll() }
            records.hand(to: accessLog, now: now, isIdle: count == 0)
            if isDraining && isDrained { break }
        }
        records.hand(to: accessLog, now: now, isIdle: true)
        mailbox.close()
    }

    /// Whether nothing is to be done after a while, other than by deadlines.
    private var isQuiet: Bool { records.isEmpty && sweep.isEmpty && unwatched.isEmpty && !singleUse.isHigh }

    private mutating func readClocks() {
        now = clock.monotonicTime.nanoseconds
        unixTime = clock.unixTime.seconds
        guard unixTime != dateSecond else { return }
        // What was to be believed for a while would be for longer: a clock that was set back ends that while at once.
        if unixTime < dateSecond {
            epoch += 1
            forgetTokens()
        }
        dateSecond = unixTime
        dateText.removeAll()
        HTTPDate(UnixTime(seconds: unixTime)).append(to: &dateText)
    }

    private mutating func dispatch(_ index: Int, ifForLink isForLink: Bool) {
        let token = EventToken(raw: poller.token(at: index))
        guard (token.kind == .link) == isForLink else { return }
        let readiness = poller.readiness(at: index)
        switch token.kind {
        case .client: clientEvent(token, readiness)
        case .link: linkEvent(token, readiness)
        case .listener: accept(token.index)
        case .mailbox: readMail()
        case nil: break
        }
    }

    /// Goes on with what had to pause: each gets one more turn, so that none starves the others.
    private mutating func goOn() {
        guard !ready.isEmpty else { return }
        let turn = ready
        ready.removeAll(keepingCapacity: true)
        for token in turn {
            switch token.kind {
            case .client:
                guard clients.holds(token.index, token.generation) else { continue }
                clients[token.index].isReady = false
                continueClient(token.index)
            case .link:
                guard links.holds(token.index, token.generation) else { continue }
                links[token.index].isReady = false
                readLink(token.index)
            default: break
            }
        }
    }

    /// Puts a client on the list of those to go on with.
    mutating func markReady(client: Int32) {
        guard !clients[client].isReady else { return }
        clients[client].isReady = true
        ready.append(EventToken(.client, index: client, generation: clients[client].generation))
    }

    /// Puts a link on the list of those to go on with.
    mutating func markReady(link: Int32) {
        guard !links[link].isReady else { return }
        links[link].isReady = true
        ready.append(EventToken(.link, index: link, generation: links[link].generation))
    }

    /// Gives every route its place in the counters.
    mutating func rememberRoutes() {
        slotOfRoute = snapshot.routes.routes.map { counters.slot(of: $0.name) }
    }
}
