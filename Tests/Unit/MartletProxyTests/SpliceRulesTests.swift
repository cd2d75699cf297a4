import MartletCore
import MartletHTTP
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct SpliceRulesTests {
    private static let long = SpliceRules.minimumRemainder

    @Test func `only long remainders of a known length are spliced`() {
        let cases: [(BodyFraming, Int, Bool)] = [
            (.length(1 << 20), Self.long, true), (.length(1 << 20), Self.long - 1, false), (.length(0), 0, false),
            (.chunked, Self.long, false), (.untilClose, Self.long, false), (.none, Self.long, false),
        ]
        for (framing, remaining, expected) in cases {
            #expect(SpliceRules.isWorthwhile(framing, remaining: remaining) == expected, "\(framing) \(remaining)")
        }
    }

    @Test func `small transfers end a bulk transfer`() {
        #expect(SpliceRules.isBulk(SpliceRules.minimumTransfer))
        #expect(!SpliceRules.isBulk(SpliceRules.minimumTransfer - 1))
    }

    @Test func `bytes for a failed upstream are discarded`() {
        typealias Row = (drain: PipeDrain, consumed: Int, isOver: Bool)
        let cases: [Row] = [
            (PipeDrain(sent: 5, left: 0, hasFailed: false), 5, true),
            (PipeDrain(sent: 5, left: 3, hasFailed: false), 5, false),
            (PipeDrain(sent: 0, left: 3, hasFailed: false), 0, false),
            (PipeDrain(sent: 5, left: 3, hasFailed: true), 8, true),
            (PipeDrain(sent: 0, left: 3, hasFailed: true), 3, true),
        ]
        for one in cases {
            #expect(one.drain.consumed == one.consumed && one.drain.isOver == one.isOver, "\(one.drain)")
        }
    }

    @Test func `a receiver that was waited for makes progress when it accepts bytes`() {
        for (sent, wasPaused, expected) in [(1, true, true), (0, true, false), (1, false, true), (0, false, true)] {
            let drain = PipeDrain(sent: sent, left: 1, hasFailed: false)
            #expect(drain.isProgress(wasPaused: wasPaused) == expected)
        }
    }

    @Test func `a response is spliced from an upstream in the middle of a long body`() {
        let changes: [(String, (inout UpstreamConnection) -> Void)] = [
            ("a stream", { $0.kind = .stream }), ("TLS", { $0.transport.isSecure = true }),
            ("no body yet", { $0.phase = .awaitingHead }), ("a part in a pipe", { $0.pipe = PipeHandle(index: 0) }),
            ("chunks", { $0.response.framing = .chunked }), ("a short rest", { $0.response.remaining = Self.long - 1 }),
            ("a rest after what was spliced", { $0.response.skip(1) }), ("bytes before it", { $0.input.append(1) }),
        ]
        for (name, change) in [("", { (_: inout UpstreamConnection) in })] + changes {
            var upstream = UpstreamConnection()
            upstream.phase = .body
            upstream.response.framing = .length(Self.long)
            upstream.response.remaining = Self.long
            change(&upstream)
            let canSplice = upstream.canSpliceResponse
            #expect(canSplice == name.isEmpty, "\(name)")
        }
    }

    @Test func `a response is spliced to a client whose socket accepts bytes`() {
        let changes: [(String, (inout DownstreamConnection) -> Void)] = [
            ("a stream", { $0.kind = .stream }), ("TLS", { $0.origin.rules.isSecure = true }),
            ("bytes before it", { $0.transport.output.append(1) }),
        ]
        for (name, change) in [("", { (_: inout DownstreamConnection) in })] + changes {
            var downstream = DownstreamConnection()
            change(&downstream)
            let accepts = downstream.acceptsSplicedResponse
            #expect(accepts == name.isEmpty, "\(name)")
        }
    }

    @Test func `a request is spliced from a client in the middle of it`() {
        let changes: [(String, (inout DownstreamConnection) -> Void)] = [
            ("a stream", { $0.kind = .stream }), ("TLS", { $0.origin.rules.isSecure = true }),
            ("a head", { $0.phase = .head }), ("a part in a pipe", { $0.pipe = PipeHandle(index: 0) }),
            ("bytes before it", { $0.reader.input.append(1) }),
        ]
        for (name, change) in [("", { (_: inout DownstreamConnection) in })] + changes {
            var downstream = DownstreamConnection()
            downstream.phase = .exchange
            change(&downstream)
            let canSplice = downstream.canSpliceRequest
            #expect(canSplice == name.isEmpty, "\(name)")
        }
    }

    private func holdByte(_ exchange: inout Exchange) {
        var unsent = ByteBuffer()
        unsent.append(1)
        exchange.heldBody.reclaim(&unsent, from: UpstreamBodyEncoder(.length(1), on: .http1))
    }

    @Test func `a long body is spliced when nothing is held before it`() {
        let changes: [(String, (inout Exchange) -> Void)] = [
            ("nothing was decided", { $0.responder = .none }), ("a local handler", { $0.responder = .local }),
            ("chunks", { $0.body.framing = .chunked }), ("a short rest", { $0.body.skip(1) }),
            ("a part of the head", { $0.forwarding.head.sent = 2 }),
            ("bytes of a failed upstream", holdByte),
        ]
        for (name, change) in [("", { (_: inout Exchange) in })] + changes {
            var exchange = Exchange()
            exchange.responder = .upstream
            exchange.body.framing = .length(Self.long)
            exchange.body.expect()
            exchange.forwarding.head = UpstreamHead("GET".utf8)
            exchange.forwarding.head.sent = 3
            change(&exchange)
            let canSplice = exchange.hasSpliceableBody
            #expect(canSplice == name.isEmpty, "\(name)")
        }
    }

    @Test func `a body goes past the buffer of an upstream that has sent everything`() {
        typealias Row = (name: String, change: (inout UpstreamConnection) -> Void, direct: Bool, spliced: Bool)
        let cases: [Row] = [
            ("idle", { _ in }, true, true), ("awaiting", { $0.phase = .awaitingHead }, true, true),
            ("a stream", { $0.kind = .stream }, false, false), ("TLS", { $0.transport.isSecure = true }, false, false),
            ("connecting", { $0.phase = .connecting }, false, false),
            ("a handshake", { $0.phase = .handshake }, false, false),
            ("bytes before it", { $0.output.append(1) }, false, false),
            ("its own end", { $0.transport.isReadClosed = true }, true, false),
            ("bytes in its transport", { $0.transport.output.append(1) }, true, false),
        ]
        for one in cases {
            var upstream = UpstreamConnection()
            upstream.phase = .idle
            one.change(&upstream)
            let (direct, spliced) = (upstream.acceptsDirectBody, upstream.acceptsSplicedRequest)
            #expect(direct == one.direct && spliced == one.spliced, "\(one.name)")
        }
    }
}
