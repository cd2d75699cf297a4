import MartletCore
import MartletHTTP2
import MartletResponder
import Testing

@testable import MartletDecisions

@Suite struct UpstreamFailureKindTests {
    private func kind(
        of kind: UpstreamKind = .http1, in phase: UpstreamPhase = .awaitingHead,
        carriesRequest: Bool = true, isTunnel: Bool = false, served: Int = 0, hasResponse: Bool = false
    ) -> UpstreamFailureKind {
        UpstreamFailureKind(
            of: kind, in: phase, carriesRequest: carriesRequest, isTunnel: isTunnel, served: served,
            hasResponse: hasResponse)
    }

    @Test func `a handshake that fails is no failure of a request`() {
        for one in [UpstreamKind.http1, .http2, .stream] {
            #expect(kind(of: one, in: .handshake) == .notEstablished)
            #expect(kind(of: one, in: .handshake, carriesRequest: false) == .notEstablished)
        }
    }

    @Test func `the failure of an HTTP/2 connection is that of its streams`() {
        #expect(kind(of: .http2, in: .frames, carriesRequest: false) == .connectionOfStreams)
        #expect(kind(of: .http2, in: .connecting, carriesRequest: false) == .connectionOfStreams)
        #expect(kind(of: .stream) == .noResponse)
    }

    @Test func `a connection without a request fails nothing`() {
        #expect(kind(in: .idle, carriesRequest: false, served: 3) == .unused)
    }

    @Test func `a connection that was idle before may have been closed before the request`() {
        #expect(kind(served: 1) == .stale)
        #expect(kind(served: 0) == .noResponse)
        #expect(kind(served: 1, hasResponse: true) == .incompleteResponse)
        #expect(kind(in: .body, hasResponse: true) == .incompleteResponse)
    }

    @Test func `a tunnel is one whatever was received`() {
        #expect(kind(in: .body, isTunnel: true, served: 2, hasResponse: true) == .tunnel)
    }

    @Test(
        arguments: [
            (.notEstablished, false, false), (.connectionOfStreams, false, false), (.unused, false, false),
            (.tunnel, false, false), (.stale, false, true), (.noResponse, true, true),
            (.incompleteResponse, true, false),
        ] as [(UpstreamFailureKind, Bool, Bool)])
    func `it decides about the endpoint and a retry`(kind: UpstreamFailureKind, blames: Bool, retries: Bool) {
        #expect(kind.blamesEndpoint == blames)
        #expect(kind.allowsRetry == retries)
    }

    @Test(
        arguments: [
            (.notEstablished, "upstream_unavailable", "upstream.reset"),
            (.stale, "upstream_unavailable", "upstream.reset"),
            (.noResponse, "upstream_unavailable", "upstream.reset"),
            (.incompleteResponse, "upstream_invalid", "upstream.reset"),
            (.tunnel, "upstream_invalid", "tunnel.upstream_broke"),
        ] as [(UpstreamFailureKind, String, String)])
    func `it decides about the response`(kind: UpstreamFailureKind, code: String, reason: String) {
        let failure = kind.failure("upstream.reset")
        #expect(failure.status == 502)
        #expect("\(failure.code)" == code)
        #expect(failure.reason.rawValue == reason)
    }
}

@Suite struct UpstreamEndTests {
    private func end(
        in phase: UpstreamPhase = .body, isTunnel: Bool = false, isUntilClose: Bool = true,
        hasResponse: Bool = true, isSecure: Bool = false, hasCloseNotify: Bool = false
    ) -> UpstreamEnd {
        UpstreamEnd(
            in: phase, isTunnel: isTunnel, isUntilClose: isUntilClose, hasResponse: hasResponse, isSecure: isSecure,
            hasCloseNotify: hasCloseNotify)
    }

    @Test func `a body may end with its connection`() {
        #expect(end() == .complete)
        #expect(end(isUntilClose: false) == .truncated)
    }

    @Test func `under TLS only close_notify ends it`() {
        #expect(end(isSecure: true) == .truncated)
        #expect(end(isSecure: true, hasCloseNotify: true) == .complete)
        #expect(end(isUntilClose: false, isSecure: true, hasCloseNotify: true) == .truncated)
    }

    @Test func `before the head is complete there is no response`() {
        #expect(end(in: .awaitingHead, hasResponse: true) == .truncated)
        #expect(end(in: .awaitingHead, isUntilClose: false, hasResponse: false) == .closedEarly)
        #expect(end(in: .handshake, isUntilClose: false, hasResponse: false, isSecure: true) == .closedEarly)
    }

    @Test func `a tunnel may end in one direction`() {
        #expect(end(isTunnel: true) == .tunnelSide)
        #expect(end(isTunnel: true, isUntilClose: false, isSecure: true) == .tunnelSide)
    }
}

@Suite struct UpstreamTimeoutTests {
    private func timeout(
        in phase: UpstreamPhase, isTunnel: Bool = false, isSending: Bool = false,
        isResponseDue: Bool = false, isPaused: Bool = false
    ) -> UpstreamTimeout {
        UpstreamTimeout(
            in: phase, isTunnel: isTunnel, isSending: isSending, isResponseDue: isResponseDue, isPaused: isPaused)
    }

    @Test(
        arguments: [
            (.idle, .close), (.frames, .closeFrames), (.connecting, .notEstablished), (.handshake, .notEstablished),
            (.awaitingHead, .noResponse(blamesEndpoint: false)), (.body, .stalled),
        ] as [(UpstreamPhase, UpstreamTimeout)])
    func `it depends on the phase`(phase: UpstreamPhase, expected: UpstreamTimeout) {
        #expect(timeout(in: phase) == expected)
        #expect(timeout(in: phase, isTunnel: true) == .ignore)
    }

    @Test func `an upstream that waits for the rest of a request has not failed`() {
        #expect(timeout(in: .awaitingHead, isResponseDue: true) == .noResponse(blamesEndpoint: true))
        #expect(timeout(in: .awaitingHead, isResponseDue: false) == .noResponse(blamesEndpoint: false))
    }

    @Test func `a request that progresses has more time`() {
        #expect(timeout(in: .awaitingHead, isSending: true, isResponseDue: true) == .extendSending)
    }

    @Test func `a slow client has more time`() {
        #expect(timeout(in: .body, isPaused: true) == .extendPause)
        #expect(timeout(in: .awaitingHead, isPaused: true) == .noResponse(blamesEndpoint: false))
    }
}

@Suite struct UpstreamStreamEndTests {
    private func end(
        _ code: HTTP2Code, carriesRequest: Bool = true, isEnded: Bool = false, hasResponseStarted: Bool = false
    ) -> UpstreamStreamEnd {
        UpstreamStreamEnd(
            code, carriesRequest: carriesRequest, isEnded: isEnded, hasResponseStarted: hasResponseStarted)
    }

    @Test(
        arguments: [
            (.noError, .reset), (.protocolError, .malformed), (.internalError, .reset), (.refusedStream, .refused),
            (.cancel, .reset), (.enhanceYourCalm, .reset),
        ] as [(HTTP2Code, UpstreamStreamEnd)])
    func `it depends on the code, until the response has started`(code: HTTP2Code, expected: UpstreamStreamEnd) {
        #expect(end(code) == expected)
        #expect(end(code, hasResponseStarted: true) == .reset)
        #expect(end(code, isEnded: true, hasResponseStarted: true) == .keep)
        #expect(end(code, carriesRequest: false) == .close)
        #expect(end(code, carriesRequest: false, isEnded: true) == .close)
    }
}
