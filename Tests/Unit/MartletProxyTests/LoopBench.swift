import CLinux
import Glibc
import MartletAuthenticator
import MartletConfig
import MartletCore
import MartletDecisionsTesting
import MartletHTTP
import MartletHTTP2
import MartletIO
import MartletResponder
import MartletTesting

@testable import MartletDecisions
@testable import MartletProxy

/// A client's connection of a bench, and its other end.
struct BenchClient {
    let downstream: Handle<DownstreamConnection>
    let end: BenchEnd
}

/// A connection of a bench to an endpoint, and its other end.
struct BenchServer {
    let upstream: Handle<UpstreamConnection>
    let end: BenchEnd
}

/// A request that was forwarded over a connection of the pool.
struct BenchExchange {
    let exchange: Handle<Exchange>
    let client: BenchClient
    let server: BenchServer
    /// What the endpoint got of it so far.
    let sent: String

    var downstream: Handle<DownstreamConnection> { client.downstream }
    var upstream: Handle<UpstreamConnection> { server.upstream }
}

/// The state of a loop without its thread: connections are pairs of sockets, events are calls, and time passes when a
/// test says so.
final class LoopBench {
    /// The first moment of every test, in nanoseconds: a whole number of ticks of the timer wheel.
    static let start: Int64 = 1_000_000_000_000

    private var loop: LoopState
    private var router: RequestRouter
    private var responses: ResponseReader
    private var authenticator: Authenticator
    private let time: Box<Int64>
    let mailbox: Mailbox
    let connections: ConnectionLimit
    let access: RecordedAccess
    let recorder: LogRecorder
    /// They stay open as long as the bench, whichever of them a test uses.
    private var ends: [BenchEnd] = []

    init(_ configure: (inout SampleSettings) -> Void = { _ in }) throws {
        var settings = SampleSettings()
        configure(&settings)
        let snapshot = settings.snapshot()
        let time = Box(LoopBench.start)
        let source = LoopBench.clock(time)
        let mailbox = try Mailbox()
        let poller = try Poller()
        let (connections, access, recorder) = (ConnectionLimit(), RecordedAccess(), LogRecorder())
        self.time = time
        self.mailbox = mailbox
        self.connections = connections
        self.access = access
        self.recorder = recorder
        router = RequestRouter(head: RequestHead(maximumFields: 50))
        responses = ResponseReader()
        authenticator = Authenticator(snapshot.authentication)
        let clock = LoopClock(source)
        let schedule = LoopSchedule(now: clock.now)
        let context = LoopContext(
            snapshot: snapshot, poller: poller, clock: clock, schedule: schedule,
            threads: LoopThreads(
                mailbox: mailbox, verifier: Verifier(threads: 1, clock: source),
                handshakePool: ThreadPool(.undivided, name: "bench", threads: 1, queue: 1, niceness: 0, clock: source),
                mirror: settings.mirror),
            logs: LoopLogs(
                access: access, debug: DebugLog(Logger(recorder, minimum: .debug)),
                requestIDPrefix: 0x0123_4567_89AB_CDEF),
            counters: Counters())
        loop = LoopState(context, acceptor: Acceptor(connections: connections, listeners: []))
        loop.upstreams.directory.adopt(snapshot, resolved: [], now: 0)
        let names = snapshot.routeNames
        loop.context.counters.assignSlots(toRoutes: names)
    }

    deinit {
        run { loop in
            while let session = loop.context.schedule.closedSessions.popLast() { session.free() }
            for index in 0..<loop.downstreams.all.end {
                guard let downstream = loop.downstreams.all.handle(at: index) else { continue }
                loop.downstreams[downstream].streams?.session.free()
                Glibc.close(loop.downstreams[downstream].transport.fd)
            }
            for index in 0..<loop.upstreams.all.end {
                guard let upstream = loop.upstreams.all.handle(at: index) else { continue }
                Glibc.close(loop.upstreams[upstream].transport.fd)
            }
        }
    }

    /// A clock that is set by hand; the second of the wall clock stays the same.
    static func clock(_ time: Box<Int64>) -> Clock {
        Clock(
            unixTime: { UnixTime(seconds: 784_111_777) },
            monotonicTime: { MonotonicTime(nanoseconds: time.value) })
    }

    /// Lends the state, whose parts a call may need side by side.
    @discardableResult
    func run<Value>(_ body: (inout LoopState) throws -> Value) rethrows -> Value { try body(&loop) }

    // MARK: Time

    var now: Int64 { time.value }

    func advance(milliseconds: Int64) {
        time.withLock { $0 += milliseconds * 1_000_000 }
        run { loop in _ = loop.context.clock.read() }
    }

    /// A deadline in milliseconds since the start; `nil` for none.
    func due(_ downstream: Handle<DownstreamConnection>) -> Int64? {
        LoopBench.milliseconds(run { $0.downstreams[downstream].timer.deadline })
    }

    func due(_ upstream: Handle<UpstreamConnection>) -> Int64? {
        LoopBench.milliseconds(run { $0.upstreams[upstream].timer.deadline })
    }

    static func milliseconds(_ deadline: Int64) -> Int64? {
        deadline == .max ? nil : (deadline - start) / 1_000_000
    }

    // MARK: Connections

    /// Opens a connection as a listener does; the client is 192.0.2.1.
    func openClient(
        rules: ListenerRules = ListenerRules(), isTrusted: Bool = false, isUnix: Bool = false, registers: Bool = true
    ) -> BenchClient {
        let (near, far) = BenchEnd.pair()
        let address = DownstreamAddress(
            bytes: BenchAddress.client, text: AddressText("192.0.2.1".utf8), isTrusted: isTrusted, port: 40_000,
            isUnix: isUnix)
        let downstream = run { loop in
            let downstream = loop.downstreams.all.allocate()
            loop.downstreams[downstream].open(
                fd: near, kind: .http1, rules: rules, address: address, maximumHeadBytes: 16_384)
            loop.downstreams[downstream].origin.listener = 1
            let admission = loop.downstreams.acceptor.admit(address.bytes, limits: loop.context.snapshot.limits)
            loop.downstreams[downstream].origin.admission = admission
            if registers { loop.downstreams.register(downstream, &loop.context) }
            let alive = loop.downstreams.all.count
            loop.downstreams.acceptor.order.add(downstream, alive: alive) { _ in true }
            loop.startConnection(downstream)
            return downstream
        }
        ends.append(far)
        return BenchClient(downstream: downstream, end: far)
    }

    /// Opens a connection to an endpoint.
    func openServer(
        _ endpoint: Int = 0, kind: UpstreamKind = .http1, connected: Bool = true, served: Int = 0
    ) -> BenchServer {
        let (near, far) = BenchEnd.pair()
        let upstream = run { loop in
            let upstream = loop.upstreams.all.allocate()
            loop.upstreams[upstream].open(
                fd: near, kind: kind, endpoint: EndpointIndex(rawValue: Int32(endpoint)), connected: connected)
            loop.upstreams[upstream].served = served
            return upstream
        }
        ends.append(far)
        return BenchServer(upstream: upstream, end: far)
    }

    /// Adds a connection to an endpoint's pool; the next request for that uses it.
    func pool(_ endpoint: Int = 0, served: Int = 0) -> BenchServer {
        let server = openServer(endpoint, served: served)
        run { $0.upstreams.directory.endpoints[endpoint].idle.append(server.upstream) }
        return server
    }

    // MARK: Requests

    /// Begins the exchange of a request, as soon as its head is parsed.
    func begin(_ text: String, on downstream: Handle<DownstreamConnection>) -> Handle<Exchange> {
        let head = Array(text.utf8)
        return unsafe head.withUnsafeBufferPointer { unsafe begin($0, on: downstream) }
    }

    func begin(
        _ head: UnsafeBufferPointer<UInt8>, on downstream: Handle<DownstreamConnection>
    ) -> Handle<Exchange> {
        var parser = RequestParser(maximumHeadBytes: 16_384)
        let outcome = unsafe parser.parse(head.span, into: &router.head)
        let isWhole = outcome == .complete(head.count)
        precondition(isWhole, "not a head")
        return withRouter { router, loop in
            unsafe router.beginExchange(downstream, head, &loop.exchanges, &loop.downstreams, &loop.context)
        }
    }

    /// Routes a request whose exchange has begun with the same head.
    /// - Returns: whether it has a route to an upstream; otherwise it was rejected, or a handler responds.
    func route(_ text: String, _ exchange: Handle<Exchange>) -> Bool {
        let head = Array(text.utf8)
        return unsafe head.withUnsafeBufferPointer { head in
            guard let routed = unsafe router.route(exchange, head, &loop) else { return false }
            return routed.route >= 0
        }
    }

    /// Begins, routes and forwards a request, as far as it gets.
    @discardableResult
    func admit(_ text: String, on downstream: Handle<DownstreamConnection>) -> Handle<Exchange> {
        let head = Array(text.utf8)
        return unsafe head.withUnsafeBufferPointer { head in
            let exchange = unsafe begin(head, on: downstream)
            guard let routed = unsafe router.route(exchange, head, &loop) else { return exchange }
            var credential = CredentialState()
            let time = loop.time
            switch unsafe authenticator.authorize(
                routed, head, authorization: nil, result: nil, at: time, &credential)
            {
            case .authorized(let request):
                if loop.exchanges[exchange].request.check.isEmpty {
                    unsafe router.forward(request, head, &loop)
                } else {
                    unsafe router.respondToCheck(request, head, &loop)
                }
            case .rejected(let rejection): fatalError("rejected: \(rejection.failure.reason)")
            case .pending: fatalError("no route of the bench verifies a credential")
            case .unproven: fatalError("no credential of the bench is bound")
            }
            return exchange
        }
    }

    /// A request of a new client that is forwarded over a pooled connection to the first endpoint.
    func forward(_ text: String = BenchText.get, served: Int = 0) -> BenchExchange {
        let (server, client) = (pool(served: served), openClient())
        let exchange = admit(text, on: client.downstream)
        return BenchExchange(exchange: exchange, client: client, server: server, sent: server.end.text())
    }

    /// Lends the router, with the state.
    func withRouter<Value>(_ body: (inout RequestRouter, inout LoopState) -> Value) -> Value { body(&router, &loop) }

    /// Has the limits that need the caller count a request of the route `api`.
    /// - Returns: whether it passes; it is rejected, or waits.
    func admitCaller(_ exchange: Handle<Exchange>, _ head: String, subject: Int) -> Bool {
        withRouter { router, loop in
            loop.exchanges[exchange].credential.subject = subject
            return unsafe Array(head.utf8).withUnsafeBufferPointer { bytes in
                do throws(Failure) {
                    return unsafe try router.admitCaller(
                        exchange, route: 1, bytes, &loop.exchanges, &loop.downstreams, &loop.context)
                } catch {
                    loop.reject(exchange, error)
                    return false
                }
            }
        }
    }

    /// The client sends a part of its body.
    /// - Returns: how many bytes were consumed.
    @discardableResult
    func receive(_ bytes: [UInt8], for exchange: Handle<Exchange>) -> Int {
        unsafe bytes.withUnsafeBufferPointer { unsafe RequestForwarder.consumeBody($0, for: exchange, &loop) }
    }

    @discardableResult
    func receive(_ text: String, for exchange: Handle<Exchange>) -> Int { receive(Array(text.utf8), for: exchange) }

    /// The loop writes to a client.
    func write(_ bytes: [UInt8], to downstream: Handle<DownstreamConnection>) {
        unsafe bytes.withUnsafeBufferPointer { unsafe loop.write($0, to: downstream) }
    }

    /// A part of a response's body is forwarded.
    func forwardBody(_ bytes: [UInt8], of exchange: Handle<Exchange>) {
        unsafe bytes.withUnsafeBufferPointer { unsafe loop.forwardResponseBody($0, exchange) }
    }

    // MARK: Responses

    /// The poller reports an event of an upstream connection.
    func event(_ upstream: Handle<UpstreamConnection>, _ readiness: Readiness = .readable) {
        responses.upstreamEvent(upstream, readiness, &loop)
    }

    /// Time passes until the deadline of an upstream connection, and its timer fires.
    func expire(_ upstream: Handle<UpstreamConnection>) {
        let (deadline, tick) = run { ($0.upstreams[upstream].timer.deadline, $0.upstreams[upstream].timer.scheduled) }
        precondition(deadline != .max, "no deadline")
        advance(milliseconds: max(deadline - now, 0) / 1_000_000)
        responses.timerFired(upstream: upstream, tick, &loop)
    }

    /// Lends the reader, with the state.
    @discardableResult
    func withResponses<Value>(_ body: (inout ResponseReader, inout LoopState) -> Value) -> Value {
        body(&responses, &loop)
    }
}

/// Not the one of the test support, which is a request with its response as a client sees them.
typealias Exchange = MartletProxy.Exchange
