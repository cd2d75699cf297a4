import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct ConnectionEndingTests {
    @Test func `a connection is kept after a response that is not its last`() {
        for hasOutput in [false, true] {
            var ending = ConnectionEnding()
            let step = ending.responseEnded(closes: false, hasOutput: hasOutput)
            #expect(step == .keep && !ending.closesAfterFlush)
        }
    }

    @Test func `the last response is sent before the connection is closed`() {
        var ending = ConnectionEnding()
        let flushing = ending.responseEnded(closes: true, hasOutput: true)
        #expect(flushing == .closeAfterFlush && ending.closesAfterFlush)
        ending = ConnectionEnding()
        let closing = ending.responseEnded(closes: true, hasOutput: false)
        #expect(closing == .close && ending.closesAfterFlush)
    }

    @Test(arguments: [(false, false), (false, true), (true, false), (true, true)])
    func `input is discarded where a client may still be sending`(mayBeSending: Bool, isReadClosed: Bool) {
        let step = ConnectionEnding().outputSent(mayBeSending: mayBeSending, isReadClosed: isReadClosed)
        #expect(step == (mayBeSending && !isReadClosed ? .linger : .close))
    }

    @Test func `no more than a mebibyte is discarded`() {
        var ending = ConnectionEnding()
        ending.closesAfterFlush = true
        ending.startLinger()
        #expect(!ending.closesAfterFlush && ending.lingerBudget == 1024 * 1024)
        let first = ending.discard(1024 * 1024 - 1)
        let second = ending.discard(1)
        let third = ending.discard(1)
        #expect(first && second && !third)
    }

    @Test func `a connection that never lingered has no budget`() {
        var ending = ConnectionEnding()
        let nothing = ending.discard(0)
        let something = ending.discard(1)
        #expect(nothing && !something)
    }
}

@Suite struct HalfCloseTests {
    private func halfClose(
        in phase: DownstreamPhase, isTunnel: Bool = false, isRequestComplete: Bool = false,
        hasOutput: Bool = false
    ) -> HalfClose {
        HalfClose(in: phase, isTunnel: isTunnel, isRequestComplete: isRequestComplete, hasOutput: hasOutput)
    }

    @Test(
        arguments: [
            (.proxyHeader, .close), (.handshake, .close), (.lingering, .close), (.frames, .abandon), (.head, .close),
            (.waiting, .wait), (.exchange, .abandon),
        ] as [(DownstreamPhase, HalfClose)])
    func `it depends on the phase`(phase: DownstreamPhase, expected: HalfClose) {
        #expect(halfClose(in: phase) == expected)
        if phase != .head { #expect(halfClose(in: phase, hasOutput: true) == expected) }
        if phase != .exchange { #expect(halfClose(in: phase, isRequestComplete: true) == expected) }
    }

    @Test func `a response that is being sent is sent completely`() {
        #expect(halfClose(in: .head, hasOutput: true) == .closeAfterFlush)
    }

    @Test func `a complete request gets its response, if the client is there`() {
        #expect(halfClose(in: .exchange, isRequestComplete: true) == .probe)
        #expect(halfClose(in: .exchange, isRequestComplete: true, hasOutput: true) == .probe)
    }

    @Test func `a tunnel goes on in the other direction`() {
        #expect(halfClose(in: .exchange, isTunnel: true) == .endTunnelSide)
        #expect(halfClose(in: .exchange, isTunnel: true, isRequestComplete: true) == .endTunnelSide)
    }
}

@Suite struct DownstreamTimeoutTests {
    @Test(
        arguments: [
            (.proxyHeader, .close), (.handshake, .failHandshake), (.lingering, .close), (.frames, .closeFrames),
            (.head, .close), (.waiting, .endWait), (.exchange, .checkExchange),
        ] as [(DownstreamPhase, DownstreamTimeout)])
    func `it depends on the phase`(phase: DownstreamPhase, expected: DownstreamTimeout) {
        #expect(DownstreamTimeout(in: phase, isStream: false, isReceivingHead: false) == expected)
        guard phase != .head else { return }
        #expect(DownstreamTimeout(in: phase, isStream: true, isReceivingHead: true) == expected)
    }

    @Test func `only a head that has begun gets a response`() {
        #expect(DownstreamTimeout(in: .head, isStream: false, isReceivingHead: true) == .rejectHead)
        #expect(DownstreamTimeout(in: .head, isStream: true, isReceivingHead: true) == .checkWriting)
        #expect(DownstreamTimeout(in: .head, isStream: true, isReceivingHead: false) == .checkWriting)
    }
}

@Suite struct PeerProbeTests {
    @Test func `it is sent once for each request`() {
        var probe = PeerProbe()
        let first = probe.schedule(restoring: 17)
        #expect(first && probe.isPending && probe.deadlineAfterwards == 17)
        probe.isPending = false
        let second = probe.schedule(restoring: 18)
        #expect(!second && !probe.isPending && probe.deadlineAfterwards == 17)
        probe.begin()
        let third = probe.schedule(restoring: 19)
        #expect(third && probe.isPending && probe.deadlineAfterwards == 19)
    }

    @Test func `a request that begins has no probe`() {
        var probe = PeerProbe()
        _ = probe.schedule(restoring: .max)
        probe.begin()
        #expect(!probe.isPending && !probe.wasSent)
    }

    @Test(
        arguments: [
            (false, false, false, .interimResponse), (false, false, true, .interimResponse),
            (false, true, true, .leadingZero), (false, true, false, .none), (true, false, false, .none),
            (true, true, true, .none), (true, true, false, .none),
        ] as [(Bool, Bool, Bool, PeerProbe.Message)])
    func `its bytes have no effect`(isHTTP10: Bool, hasStarted: Bool, isChunked: Bool, expected: PeerProbe.Message) {
        let message = PeerProbe.Message(isHTTP10: isHTTP10, hasResponseStarted: hasStarted, isChunked: isChunked)
        #expect(message == expected)
    }
}
