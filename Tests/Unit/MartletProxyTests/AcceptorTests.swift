import MartletConfig
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct AcceptorTests {
    private static let first: [UInt8] = [UInt8](repeating: 0, count: 15) + [1]
    private static let second: [UInt8] = [UInt8](repeating: 0, count: 15) + [2]

    private func limits(connections: Int, perAddress: Int = 0) -> Limits {
        var limits = Limits()
        limits.connections = connections
        limits.connectionsPerAddress = perAddress
        return limits
    }

    private func connection(_ index: Int32) -> Handle<DownstreamConnection> { Handle(index: index, generation: 0) }

    @Test func `at the limit, a connection is admitted in place of another one`() {
        let acceptor = Acceptor(connections: ConnectionLimit(), listeners: [])
        let limits = limits(connections: 2)
        let admitted = [acceptor.admit(Self.first, limits: limits), acceptor.admit(nil, limits: limits)]
        let refused = acceptor.admit(Self.second, limits: limits)
        #expect(admitted == [.counted, .counted] && refused == .refused)
        acceptor.release(Self.first, .counted)
        let again = acceptor.admit(Self.second, limits: limits)
        #expect(again == .counted)
    }

    @Test func `at the limit of an address, closing another connection would not help`() {
        let acceptor = Acceptor(connections: ConnectionLimit(), listeners: [])
        let limits = limits(connections: 100, perAddress: 1)
        let admitted = acceptor.admit(Self.first, limits: limits)
        let refused = acceptor.admit(Self.first, limits: limits)
        let other = acceptor.admit(Self.second, limits: limits)
        let unknown = acceptor.admit(nil, limits: limits)
        #expect(admitted.contains(.countedByAddress) && refused == .refusedToAddress)
        #expect(other.contains(.countedByAddress) && unknown == .counted)
        acceptor.release(Self.first, admitted)
        let again = acceptor.admit(Self.first, limits: limits)
        #expect(again.contains(.countedByAddress))
    }

    @Test func `a connection that was refused is not counted out`() {
        let count = ConnectionLimit()
        let acceptor = Acceptor(connections: count, listeners: [])
        _ = acceptor.admit(nil, limits: limits(connections: 1))
        acceptor.release(Self.first, .refused)
        #expect(count.count == 1)
    }

    @Test func `connections are registered in order, when their responses take long`() {
        var acceptor = Acceptor(connections: ConnectionLimit(), listeners: [])
        let delay = Acceptor.registrationDelay
        acceptor.deferRegistration(of: connection(1), since: 0)
        acceptor.deferRegistration(of: connection(2), since: delay / 2)
        let early = acceptor.nextOverdue(at: delay - 1)
        let first = acceptor.nextOverdue(at: delay)
        let notYet = acceptor.nextOverdue(at: delay)
        let second = acceptor.nextOverdue(at: 2 * delay)
        let none = acceptor.nextOverdue(at: 9 * delay)
        #expect(early == nil && first == connection(1) && notYet == nil && second == connection(2) && none == nil)
    }

    @Test func `the loop sleeps until the next registration, rounded up to milliseconds`() {
        var acceptor = Acceptor(connections: ConnectionLimit(), listeners: [])
        let idle = acceptor.registrationWait(at: 5)
        acceptor.deferRegistration(of: connection(1), since: 0)
        let waits = [Int64(0), 1, 19_000_001, 20_000_000, 30_000_000].map { acceptor.registrationWait(at: $0) }
        #expect(idle == .max && waits == [21, 20, 1, 1, 1])
    }

    @Test func `the loop is quiet when nothing is deferred`() {
        var acceptor = Acceptor(connections: ConnectionLimit(), listeners: [])
        let atFirst = acceptor.isQuiet
        acceptor.deferRegistration(of: connection(1), since: 0)
        let whileDeferred = acceptor.isQuiet
        _ = acceptor.nextOverdue(at: .max)
        let afterwards = acceptor.isQuiet
        for _ in 0..<DeferAcceptPolicy.threshold { acceptor.deferAccept.recordSingleUse() }
        _ = acceptor.deferAccept.evaluate(at: 1)
        let whileActive = acceptor.isQuiet
        #expect(atFirst && !whileDeferred && afterwards && !whileActive)
    }

    @Test func `listeners are found by their number`() {
        let sockets = [Int32(4), 9].map { ListenerSocket(id: $0, fd: -1, isShared: false, role: .gateway) }
        let acceptor = Acceptor(connections: ConnectionLimit(), listeners: sockets)
        let found = [acceptor.index(ofListener: 4), acceptor.index(ofListener: 9), acceptor.index(ofListener: 5)]
        #expect(found == [0, 1, nil])
    }
}

@Suite struct UnprovenConnectionKindTests {
    private static let second: Int64 = 1_000_000_000
    private static let timeouts = LoopTimeouts(ServerTimeouts())

    private func isEvictable(_ wait: UnprovenConnection.Wait, at now: Int64) -> Bool? {
        UnprovenConnection(waiting: wait, timeouts: Self.timeouts)?.isEvictable(at: now)
    }

    @Test(arguments: [DownstreamPhase.proxyHeader, .handshake, .head])
    func `a wait began its timeout before its deadline`(phase: DownstreamPhase) {
        // All three timeouts are 10 s by default.
        let wait = UnprovenConnection.Wait(phase: phase, deadline: 12 * Self.second)
        #expect(isEvictable(wait, at: 2 * Self.second) == false)
        #expect(isEvictable(wait, at: 2 * Self.second + UnprovenConnection.minimumAge) == true)
        #expect(isEvictable(UnprovenConnection.Wait(phase: phase), at: .max) == nil)
    }

    @Test(arguments: [DownstreamPhase.waiting, .lingering, .exchange, .frames])
    func `other phases are not waits`(phase: DownstreamPhase) {
        #expect(isEvictable(UnprovenConnection.Wait(phase: phase, deadline: 0), at: Self.second) == nil)
    }

    @Test func `a connection that had a request is protected between requests`() {
        var wait = UnprovenConnection.Wait(deadline: 10 * Self.second)
        #expect(isEvictable(wait, at: Self.second) == true)
        wait.requests = 1
        #expect(isEvictable(wait, at: Self.second) == nil)
        wait.isReceivingHead = true
        #expect(isEvictable(wait, at: Self.second) == true)
        wait.hasOutput = true
        #expect(isEvictable(wait, at: Self.second) == nil)
    }

    @Test func `an HTTP/2 connection without streams is protected after its first request`() {
        func isEvictable(requests: Int, head: Int64, idle: Int64) -> Bool? {
            let now = 5 * Self.second
            return UnprovenConnection(withoutStreams: requests, headStartedAt: head, idleSince: idle, now: now)?
                .isEvictable(at: now)
        }
        #expect(isEvictable(requests: 0, head: .max, idle: 0) == true)
        #expect(isEvictable(requests: 0, head: .max, idle: 5 * Self.second) == false)
        #expect(isEvictable(requests: 0, head: .max, idle: .max) == false)
        #expect(isEvictable(requests: 1, head: .max, idle: 0) == nil)
        #expect(isEvictable(requests: 1, head: Self.second, idle: .max) == true)
    }

    @Test func `only the upload of an unverified caller is evictable`() {
        func isEvictable(_ change: (inout UnprovenConnection.Upload) -> Void) -> Bool? {
            var upload = UnprovenConnection.Upload()
            change(&upload)
            return UnprovenConnection(upload)?.isEvictable(at: Self.second)
        }
        #expect(isEvictable { _ in } == true)
        #expect(isEvictable { $0.bytes = UnprovenConnection.minimumRate } == false)
        #expect(isEvictable { $0.started = Self.second } == false)
        #expect(isEvictable { $0.isAnonymous = false } == nil)
        #expect(isEvictable { $0.isRequestComplete = true } == nil)
        #expect(isEvictable { $0.hasResponseStarted = true } == nil)
        #expect(isEvictable { $0.isUpgrade = true } == nil)
    }
}
