import MartletTesting
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct HalfCloseTableTests {
    private func letter(_ halfClose: HalfClose) -> String {
        switch halfClose {
        case .close: "c"
        case .closeAfterFlush: "F"
        case .abandon: "a"
        case .probe: "P"
        case .endTunnelSide: "T"
        case .wait: "w"
        }
    }

    @Test(arguments: [
        PhaseRow<DownstreamPhase>(.proxyHeader, "cccccccc"), PhaseRow<DownstreamPhase>(.handshake, "cccccccc"),
        PhaseRow<DownstreamPhase>(.lingering, "cccccccc"), PhaseRow<DownstreamPhase>(.frames, "aaaaaaaa"),
        PhaseRow<DownstreamPhase>(.head, "ccccFFFF"),
        PhaseRow<DownstreamPhase>(.waiting, "wwwwwwww"), PhaseRow<DownstreamPhase>(.exchange, "aTPTaTPT"),
    ])
    func `a half-close means the same in a phase, whatever else is set`(_ row: PhaseRow<DownstreamPhase>) {
        let found = combinations(3).map { flags in
            letter(
                HalfClose(in: row.phase, isTunnel: flags[0], isRequestComplete: flags[1], hasOutput: flags[2]))
        }
        #expect(found.joined() == row.expected)
    }

    @Test func `a client of HTTP/1.0 that does not keep its connection has left`() {
        for flags in combinations(2) {
            let halfClose = HalfClose(
                in: .exchange, isTunnel: false, isRequestComplete: flags[0], isLast: true, hasOutput: flags[1])
            #expect(halfClose == .abandon)
        }
        #expect(
            HalfClose(in: .head, isTunnel: false, isRequestComplete: false, isLast: true, hasOutput: true)
                == .closeAfterFlush)
    }
}

@Suite struct DownstreamTimeoutTableTests {
    private func letter(_ timeout: DownstreamTimeout) -> String {
        switch timeout {
        case .close: "c"
        case .failHandshake: "h"
        case .closeFrames: "f"
        case .checkWriting: "W"
        case .rejectHead: "R"
        case .endWait: "v"
        case .checkExchange: "x"
        }
    }

    @Test(arguments: [
        PhaseRow<DownstreamPhase>(.proxyHeader, "cccc"), PhaseRow<DownstreamPhase>(.handshake, "hhhh"),
        PhaseRow<DownstreamPhase>(.lingering, "cccc"),
        PhaseRow<DownstreamPhase>(.frames, "ffff"), PhaseRow<DownstreamPhase>(.head, "cWRW"),
        PhaseRow<DownstreamPhase>(.waiting, "vvvv"),
        PhaseRow<DownstreamPhase>(.exchange, "xxxx"),
    ])
    func `a deadline means the same in a phase, except before a request`(_ row: PhaseRow<DownstreamPhase>) {
        let found = combinations(2).map { flags in
            letter(DownstreamTimeout(in: row.phase, isStream: flags[0], isReceivingHead: flags[1]))
        }
        #expect(found.joined() == row.expected)
    }
}

@Suite struct ConnectionEndingSequenceTests {
    @Test func `a connection that lingers has its whole budget each time`() {
        var ending = ConnectionEnding()
        let limit = ConnectionEnding.lingerBytes
        for _ in 0..<2 {
            ending.startLinger()
            let (half, rest, more) = (ending.discard(limit / 2), ending.discard(limit / 2), ending.discard(1))
            #expect(half && rest && !more && ending.lingerBudget == -1)
        }
    }

    @Test func `one read over the budget is one too many`() {
        var ending = ConnectionEnding()
        ending.startLinger()
        let isAllowed = ending.discard(ConnectionEnding.lingerBytes + 1)
        #expect(!isAllowed)
    }

    @Test func `the decision to close outlives further responses`() {
        var ending = ConnectionEnding()
        let steps = [
            ending.responseEnded(closes: false, hasOutput: true), ending.responseEnded(closes: true, hasOutput: true),
            ending.responseEnded(closes: false, hasOutput: false),
        ]
        #expect(steps == [.keep, .closeAfterFlush, .keep] && ending.closesAfterFlush)
        ending.startLinger()
        #expect(!ending.closesAfterFlush)
    }

    @Test func `a connection lingers for two seconds`() {
        #expect(ConnectionEnding.lingerTime == 2_000_000_000 && ConnectionEnding.lingerBytes == 1_048_576)
    }
}

@Suite struct PeerProbeSequenceTests {
    /// What happens to the probe of a connection.
    enum Step: Sendable {
        case begin
        /// The client half-closes while the connection has this deadline.
        case schedule(Int64)
        /// The probe is due.
        case send
    }

    @Test(
        arguments: [
            ([.schedule(5)], [true], true, 5), ([.schedule(5), .schedule(6)], [true, false], true, 5),
            ([.schedule(5), .send], [true], false, 5), ([.schedule(5), .send, .schedule(6)], [true, false], false, 5),
            ([.schedule(5), .begin], [true], false, 5), ([.schedule(5), .begin, .schedule(6)], [true, true], true, 6),
            ([.schedule(5), .send, .begin, .schedule(.max)], [true, true], true, .max), ([.begin], [], false, .max),
        ] as [([Step], [Bool], Bool, Int64)])
    func `it is scheduled once for each request`(
        _ steps: [Step], _ expected: [Bool], _ isPending: Bool, _ deadline: Int64
    ) {
        var probe = PeerProbe()
        var scheduled: [Bool] = []
        for step in steps {
            switch step {
            case .begin: probe.begin()
            case .schedule(let deadline): scheduled.append(probe.schedule(restoring: deadline))
            case .send: probe.isPending = false
            }
        }
        #expect(scheduled == expected && probe.isPending == isPending && probe.deadlineAfterwards == deadline)
    }
}

@Suite struct ConnectionOrderSequenceTests {
    private func connection(_ index: Int32) -> Handle<DownstreamConnection> { Handle(index: index, generation: 0) }

    @Test func `ended connections are removed only when there are too many of them`() {
        var order = ConnectionOrder()
        var asked = 0
        // With ten connections alive, 1044 entries are allowed before one more is added.
        for index in Int32(0)..<1045 {
            order.add(connection(index), alive: 10) { _ in
                asked += 1
                return false
            }
        }
        #expect(asked == 0 && order.count == 1045)
        order.add(connection(1045), alive: 10) { connection in
            asked += 1
            return connection.index >= 1035
        }
        #expect(asked == 1045 && order.count == 11)
        let rest = (0..<12).map { _ in order.popOldest()?.index }
        #expect(rest == (Int32(1035)...1045).map { Optional($0) } + [nil])
    }

    @Test func `connections that are alive stay in order when others are removed`() {
        var order = ConnectionOrder()
        for index in Int32(0)..<2000 { order.add(connection(index), alive: 1000) { _ in true } }
        order.requeue(connection(9999))
        for index in Int32(2000)..<3030 {
            order.add(connection(index), alive: 1) { $0.index % 500 == 0 || $0.index > 2990 }
        }
        var found: [Int32] = []
        while let connection = order.popOldest() {
            if connection.index % 500 == 0, connection.index < 2000 { found.append(connection.index) }
        }
        #expect(found == [0, 500, 1000, 1500])
    }

    @Test func `an empty order has no oldest connection`() {
        var order = ConnectionOrder()
        let (none, count) = (order.popOldest(), order.count)
        order.requeue(connection(3))
        let indices = [order.popOldest()?.index, order.popOldest()?.index]
        #expect(none == nil && count == 0 && indices == [3, nil])
    }
}

@Suite struct ListenerRulesTests {
    @Test func `a listener has no rules by default`() {
        let rules = ListenerRules()
        #expect(!rules.isSecure && !rules.offersHTTP2 && !rules.expectsProxyHeader && !rules.isTrusted)
        #expect(rules.redirectPort == 0 && rules.strictTransportSeconds == 0)
    }

    @Test func `a connection gets the rules of its listener, and TLS unless it is a stream`() {
        for isSecure in [false, true] {
            var rules = ListenerRules()
            rules.isSecure = isSecure
            rules.strictTransportSeconds = 60
            var connection = DownstreamConnection()
            connection.open(fd: -1, kind: .http1, rules: rules, address: DownstreamAddress(), maximumHeadBytes: 1024)
            let ofConnection = connection.transport.isSecure
            let seconds = connection.origin.rules.strictTransportSeconds
            connection.open(fd: -1, kind: .stream, rules: rules, address: DownstreamAddress(), maximumHeadBytes: 1024)
            let (ofStream, ofOrigin) = (connection.transport.isSecure, connection.origin.rules.isSecure)
            #expect(ofConnection == isSecure && seconds == 60 && !ofStream && ofOrigin == isSecure)
        }
    }
}
