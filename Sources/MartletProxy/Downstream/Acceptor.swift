internal import MartletConfig
internal import MartletCore
internal import MartletDecisions

/// What a loop accepts from, which connections it admits, and when it registers them with the poller.
struct Acceptor: ~Copyable {
    /// How long a response may take before its connection is registered, in nanoseconds.
    static let registrationDelay: Int64 = 20_000_000
    /// How long nothing is accepted after the system had no descriptor or memory for it, in nanoseconds.
    static let pause: Int64 = 20_000_000

    private let connections: ConnectionLimit
    var listeners: [ListenerSocket]
    /// Decides when listeners defer accepting.
    var deferAccept = DeferAcceptPolicy()
    /// The downstream connections, oldest first.
    var order = ConnectionOrder()
    /// Connections whose final request is in progress, and which are not registered with the poller yet.
    private var deferredRegistrations = FIFO<DeferredRegistration>()
    /// For rejecting a connection when no descriptors are left.
    let reservedDescriptor = ReservedDescriptor()
    /// When a pause ends; `max` while connections are accepted.
    private var pausedUntil = Int64.max

    init(connections: ConnectionLimit, listeners: [ListenerSocket]) {
        self.connections = connections
        self.listeners = listeners
    }

    /// Where a listener is in `listeners`.
    func index(ofListener id: Int32) -> Int? { listeners.firstIndex { $0.id == id } }

    // MARK: Limits

    /// Counts a connection in, unless a limit is reached.
    /// - Parameters:
    ///   - address: of the client; `nil` where it does not identify the client.
    ///   - isDivided: whether its network has a share; a trusted proxy is many clients.
    func admit(_ address: [UInt8]?, isDivided: Bool = true, limits: Limits) -> ConnectionLimit.Admission {
        connections.enter(address, isDivided: isDivided, limits: limits)
    }

    /// Counts a connection out.
    func release(_ address: [UInt8], _ admission: ConnectionLimit.Admission) { connections.leave(address, admission) }

    // MARK: Registration

    /// Whether the loop has nothing to do for new connections at a certain time.
    var isQuiet: Bool { deferredRegistrations.isEmpty && !deferAccept.isActive && pausedUntil == .max }

    /// Accepts nothing for a while.
    mutating func pause(until end: Int64) { pausedUntil = end }

    /// Ends a pause whose time is over.
    /// - Returns: whether there was one.
    @inline(__always)
    mutating func endPause(at now: Int64) -> Bool {
        guard pausedUntil <= now else { return false }
        pausedUntil = .max
        return true
    }

    /// Postpones the registration of a connection whose final request is in progress.
    mutating func deferRegistration(of downstream: Handle<DownstreamConnection>, since: Int64) {
        deferredRegistrations.append(DeferredRegistration(downstream: downstream, since: since))
    }

    /// Removes and returns a connection that has to be registered now.
    @inline(__always)
    mutating func nextOverdue(at now: Int64) -> Handle<DownstreamConnection>? {
        guard let first = deferredRegistrations.first, now &- first.since >= Acceptor.registrationDelay else {
            return nil
        }
        _ = deferredRegistrations.popFirst()
        return first.downstream
    }

    /// How long the loop may sleep before the next deferred registration, in milliseconds.
    func registrationWait(at now: Int64) -> Int32 {
        guard let first = deferredRegistrations.first else { return .max }
        return Int32(clamping: max(first.since &+ Acceptor.registrationDelay &- now, 0) / 1_000_000 &+ 1)
    }
}
