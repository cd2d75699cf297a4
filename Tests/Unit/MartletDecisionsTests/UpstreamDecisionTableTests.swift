import MartletCore
import MartletHTTP2
import MartletResponder
import MartletTesting
import Testing

@testable import MartletDecisions

@Suite struct UpstreamEndTableTests {
    private func letter(_ end: UpstreamEnd) -> String {
        switch end {
        case .tunnelSide: "T"
        case .complete: "C"
        case .truncated: "x"
        case .closedEarly: "e"
        }
    }

    static let noBody = "eTeTxTxTeTeTxTxTeTeTxTxTeTeTxTxT"

    @Test(arguments: [
        PhaseRow<UpstreamPhase>(.connecting, noBody), PhaseRow<UpstreamPhase>(.handshake, noBody),
        PhaseRow<UpstreamPhase>(.idle, noBody),
        PhaseRow<UpstreamPhase>(.awaitingHead, noBody), PhaseRow<UpstreamPhase>(.frames, noBody),
        // Without TLS; with TLS and no close_notify; without TLS again, where close_notify means nothing; with both.
        PhaseRow<UpstreamPhase>(.body, "eTCTxTCT" + "eTeTxTxT" + "eTCTxTCT" + "eTCTxTCT"),
    ])
    func `only a body that ends with its connection is complete, under TLS only with close_notify`(
        _ row: PhaseRow<UpstreamPhase>
    ) {
        let found = combinations(5).map { flags in
            letter(
                UpstreamEnd(
                    in: row.phase, isTunnel: flags[0], isUntilClose: flags[1], hasResponse: flags[2],
                    isSecure: flags[3], hasCloseNotify: flags[4]))
        }
        #expect(found.joined() == row.expected)
    }
}

@Suite struct UpstreamTimeoutTableTests {
    private func letter(_ timeout: UpstreamTimeout) -> String {
        switch timeout {
        case .ignore: "I"
        case .close: "c"
        case .closeFrames: "f"
        case .notEstablished: "n"
        case .extendSending: "S"
        case .noResponse(let blamesEndpoint): blamesEndpoint ? "B" : "r"
        case .extendPause: "P"
        case .stalled: "x"
        }
    }

    @Test(arguments: [
        PhaseRow<UpstreamPhase>(.idle, "cIcIcIcIcIcIcIcI"), PhaseRow<UpstreamPhase>(.frames, "fIfIfIfIfIfIfIfI"),
        PhaseRow<UpstreamPhase>(.connecting, "nInInInInInInInI"),
        PhaseRow<UpstreamPhase>(.handshake, "nInInInInInInInI"),
        PhaseRow<UpstreamPhase>(.awaitingHead, "rISIBISIrISIBISI"), PhaseRow<UpstreamPhase>(.body, "xIxIxIxIPIPIPIPI"),
    ])
    func `a deadline means the same in a phase, whatever else is set`(_ row: PhaseRow<UpstreamPhase>) {
        let found = combinations(4).map { flags in
            letter(
                UpstreamTimeout(
                    in: row.phase, isTunnel: flags[0], isSending: flags[1], isResponseDue: flags[2],
                    isPaused: flags[3]))
        }
        #expect(found.joined() == row.expected)
    }

    @Test func `a paused response is checked every second`() { #expect(UpstreamTimeout.pauseCheck == 1_000_000_000) }
}

@Suite struct UpstreamFailureTableTests {
    private func letter(_ kind: UpstreamFailureKind) -> String {
        switch kind {
        case .notEstablished: "n"
        case .connectionOfStreams: "s"
        case .unused: "u"
        case .tunnel: "T"
        case .stale: "l"
        case .noResponse: "r"
        case .incompleteResponse: "i"
        }
    }

    private func found(_ kind: UpstreamKind, in phase: UpstreamPhase) -> String {
        let letters = combinations(4).map { flags in
            letter(
                UpstreamFailureKind(
                    of: kind, in: phase, carriesRequest: flags[0], isTunnel: flags[1], served: flags[2] ? 1 : 0,
                    hasResponse: flags[3]))
        }
        return letters.joined()
    }

    @Test(arguments: [UpstreamKind.http1, .stream])
    func `a failure is classified by what the connection carries`(kind: UpstreamKind) {
        for phase in [UpstreamPhase.connecting, .idle, .awaitingHead, .body, .frames] {
            #expect(found(kind, in: phase) == "uruTuluTuiuTuiuT", "\(phase)")
        }
        #expect(found(kind, in: .handshake) == String(repeating: "n", count: 16))
    }

    @Test func `all streams of a connection fail with it, unless it was not established`() {
        for phase in [UpstreamPhase.connecting, .idle, .awaitingHead, .body, .frames] {
            #expect(found(.http2, in: phase) == String(repeating: "s", count: 16), "\(phase)")
        }
        #expect(found(.http2, in: .handshake) == String(repeating: "n", count: 16))
    }

    @Test(arguments: [1, 2, Int.max])
    func `a connection is stale from its second request on`(served: Int) {
        let kind = UpstreamFailureKind(
            of: .http1, in: .awaitingHead, carriesRequest: true, isTunnel: false, served: served, hasResponse: false)
        #expect(kind == .stale)
    }

    @Test(
        arguments: [
            (.notEstablished, "upstream.reset"), (.connectionOfStreams, "upstream.reset"), (.unused, "upstream.reset"),
            (.stale, "upstream.reset"), (.noResponse, "upstream.reset"), (.incompleteResponse, "upstream.reset"),
            (.tunnel, "tunnel.upstream_broke"),
        ] as [(UpstreamFailureKind, String)])
    func `the reason is that of the failure, except for a tunnel`(_ kind: UpstreamFailureKind, _ reason: String) {
        let failure = kind.failure("upstream.reset")
        let isInvalid = kind == .tunnel || kind == .incompleteResponse
        #expect(failure.reason.rawValue == reason && failure.status == 502)
        #expect("\(failure.code)" == (isInvalid ? "upstream_invalid" : "upstream_unavailable"))
        #expect(!isInvalid || !kind.allowsRetry)
    }
}

@Suite struct UpstreamStreamEndTableTests {
    private func letter(_ end: UpstreamStreamEnd) -> String {
        switch end {
        case .close: "c"
        case .keep: "k"
        case .malformed: "M"
        case .refused: "F"
        case .reset: "r"
        }
    }

    @Test func `only two codes have a meaning of their own, before the response has started`() {
        for number in UInt32(0)...14 {
            let code = HTTP2Code(rawValue: number)
            let found = combinations(3).map { flags in
                letter(
                    UpstreamStreamEnd(code, carriesRequest: flags[0], isEnded: flags[1], hasResponseStarted: flags[2]))
            }
            let own = code == .protocolError ? "M" : code == .refusedStream ? "F" : "r"
            #expect(found.joined() == "c\(own)ckcrck", "code \(number)")
        }
    }
}

@Suite struct RetrySequenceTests {
    private static let endpoint = EndpointIndex(rawValue: 4)

    /// How often a request is sent that fails like this, one attempt after the other, and then succeeds.
    private func attempts(
        _ failures: [FailedAttempt.Progress], endpoints: Int, isRepeatable: Bool = true, hasBodyBytes: Bool = false
    ) -> Int {
        var attempts = 0
        for progress in failures {
            attempts += 1
            let attempt = FailedAttempt(
                progress: progress, endpoint: Self.endpoint, attempts: attempts, endpoints: endpoints,
                isRepeatable: isRepeatable, hasBodyBytes: hasBodyBytes, hasResponseStarted: false)
            if attempt.decision == .fail { return attempts }
        }
        return attempts + 1
    }

    @Test(
        arguments: [
            // Nothing was sent: once to each endpoint.
            ([.nothingSent, .nothingSent, .nothingSent, .nothingSent], 3, 3), ([.nothingSent], 1, 1),
            ([.nothingSent], 0, 1), ([.nothingSent], 2, 2), ([.nothingSent, .nothingSent], 2, 2),
            // It was sent: once to each endpoint, and twice to a single one.
            ([.requestSent, .requestSent, .requestSent], 5, 4), ([.requestSent], 1, 2), ([.requestSent], 0, 2),
            ([.requestSent, .requestSent, .requestSent], 2, 2), ([.requestSent, .requestSent, .requestSent], 3, 3),
            // It was refused: four times.
            ([.refused, .refused, .refused, .refused, .refused], 1, 4), ([.refused, .refused, .refused], 1, 4),
            // The attempts of all kinds count together.
            ([.nothingSent, .requestSent], 3, 3), ([.requestSent, .nothingSent, .nothingSent], 3, 3),
            ([.requestSent, .nothingSent, .requestSent], 4, 4), ([.refused, .requestSent], 3, 3),
            ([.refused, .refused, .nothingSent], 3, 3), ([.refused, .refused, .nothingSent], 4, 4),
            ([.nothingSent, .nothingSent, .nothingSent, .refused], 9, 4), ([], 1, 1),
        ] as [([FailedAttempt.Progress], Int, Int)])
    func `a request that can be repeated`(_ failures: [FailedAttempt.Progress], _ endpoints: Int, _ expected: Int) {
        #expect(attempts(failures, endpoints: endpoints) == expected)
    }

    @Test(
        arguments: [
            ([.requestSent], 1), ([.nothingSent, .requestSent], 2), ([.nothingSent, .nothingSent], 3),
            ([.refused, .requestSent], 2), ([.refused], 2),
        ] as [([FailedAttempt.Progress], Int)])
    func `a request that cannot be repeated`(_ failures: [FailedAttempt.Progress], _ expected: Int) {
        #expect(attempts(failures, endpoints: 3, isRepeatable: false) == expected)
    }

    @Test(
        arguments: [
            ([.refused], 1), ([.nothingSent, .refused], 2), ([.nothingSent, .nothingSent], 3),
        ] as [([FailedAttempt.Progress], Int)])
    func `a request whose body bytes may be lost`(_ failures: [FailedAttempt.Progress], _ expected: Int) {
        #expect(attempts(failures, endpoints: 3, hasBodyBytes: true) == expected)
    }
}
