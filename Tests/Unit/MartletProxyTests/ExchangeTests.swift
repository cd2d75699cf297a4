import MartletAuthenticator
import MartletCore
import MartletHTTP
import MartletResponder
import Testing

@testable import MartletDecisions
@testable import MartletProxy

@Suite struct ExchangeTests {
    private static let downstream = Handle<DownstreamConnection>(index: 4, generation: 2)

    /// An exchange that has used everything it has.
    private func used() -> Exchange {
        var exchange = Exchange()
        exchange.isStream = true
        exchange.upstream = Handle(index: 8, generation: 2)
        exchange.tunnel = Handle(index: 7, generation: 1)
        exchange.responder = .upstream
        exchange.request.method = .post
        exchange.request.hasContinued = true
        exchange.request.isGRPC = true
        exchange.request.acceptsTrailers = true
        exchange.body.framing = .length(9)
        exchange.body.expect()
        exchange.body.skip(9)
        exchange.pace.begin(now: 1)
        exchange.pace.restart(now: 3)
        exchange.pace.add(9)
        exchange.trailers.announced.append("a,")
        exchange.trailers.forwarded.append("A: 1\r\n")
        exchange.trailers.received.append("A: 1\r\n")
        exchange.forwarding.cluster = ClusterIndex(rawValue: 1)
        exchange.forwarding.endpoint = EndpointIndex(rawValue: 2)
        exchange.forwarding.attempts = 3
        exchange.forwarding.hash = 5
        exchange.forwarding.head = UpstreamHead("GET".utf8)
        exchange.forwarding.head.sent = 3
        exchange.response.start(status: 200, framing: .chunked, isHTTP10: false, isStream: false, closes: true)
        exchange.credential.provider = 1
        exchange.credential.revocationID = 6
        exchange.credential.end = 1000
        exchange.termination.credentialEnded(isRevoked: true, grace: 0, at: 5)
        exchange.record.routeSlot = RouteSlot(rawValue: 3)
        exchange.record.reason = 2
        exchange.record.bytesIn = 9
        exchange.record.bytesOut = 8
        return exchange
    }

    @Test func `begins without the connections and decisions of the exchange before`() {
        var exchange = used()
        exchange.begin(downstream: Self.downstream, now: 100)
        let (downstream, isStream, responder) = (exchange.downstream, exchange.isStream, exchange.responder)
        let (upstream, tunnel) = (exchange.upstream, exchange.tunnel)
        #expect(downstream == Self.downstream && !isStream && responder == .none)
        #expect(upstream.isNone && tunnel.isNone)
        let (provider, revocationID, end) = (
            exchange.credential.provider, exchange.credential.revocationID, exchange.credential.end
        )
        #expect(provider == -1 && revocationID == 0 && end == .max)
        let (deadline, isRevoked) = (exchange.termination.deadline, exchange.termination.isRevoked)
        #expect(deadline == .max && !isRevoked)
    }

    @Test func `begins without a body, and with the rate measured from now`() {
        var exchange = used()
        exchange.begin(downstream: Self.downstream, now: 100)
        let (isComplete, remaining, count) = (exchange.body.isComplete, exchange.body.remaining, exchange.body.count)
        #expect(!isComplete && remaining == 0 && count == 0)
        let (start, bytes) = (exchange.pace.windowStart, exchange.pace.windowBytes)
        #expect(start == 100 && bytes == 0)
        let trailers = exchange.trailers.announced.array + exchange.trailers.forwarded.array
        let received = exchange.trailers.received.array
        #expect(trailers == [] && received == [])
    }

    @Test func `begins without the head and the endpoint of the exchange before`() {
        var exchange = used()
        exchange.begin(downstream: Self.downstream, now: 100)
        let (cluster, endpoint) = (exchange.forwarding.cluster, exchange.forwarding.endpoint)
        let (attempts, hash) = (exchange.forwarding.attempts, exchange.forwarding.hash)
        let (head, headSent) = (exchange.forwarding.head.count, exchange.forwarding.head.sent)
        #expect(cluster.isNone && endpoint.isNone && attempts == 0 && hash == 0 && head == 0 && headSent == 0)
    }

    @Test func `begins without the response and the record of the exchange before`() {
        var exchange = used()
        exchange.begin(downstream: Self.downstream, now: 100)
        let (status, hasStarted, closes) = (
            exchange.response.status, exchange.response.hasStarted, exchange.response.closesDownstream
        )
        #expect(status == 0 && !hasStarted && !closes)
        let (started, slot, reason) = (exchange.record.started, exchange.record.routeSlot, exchange.record.reason)
        let (bytesIn, bytesOut) = (exchange.record.bytesIn, exchange.record.bytesOut)
        #expect(started == 100 && slot.rawValue == RouteSlot.noRoute.rawValue && reason == 0)
        #expect(bytesIn == 0 && bytesOut == 0)
    }

    @Test func `the head sets what else a request has`() {
        var request = RequestProperties()
        request.method = .put
        request.isHTTP10 = true
        request.keepsAlive = false
        request.expectsContinue = true
        request.hasContinued = true
        request.isGRPC = true
        request.acceptsTrailers = true
        request.begin()
        #expect(!request.hasContinued && !request.isGRPC && !request.acceptsTrailers)
        #expect(request.method == .put && request.isHTTP10 && !request.keepsAlive && request.expectsContinue)
    }

    @Test func `its end frees what only some exchanges hold`() {
        var exchange = used()
        exchange.record.forwardedClient = Array("198.51.100.9".utf8)
        exchange.record.forwardedNetwork = [UInt8](repeating: 1, count: 16)
        exchange.forwarding.headerRules.begin(route: 5, rules: .hasRemovals)
        var piece = ByteBuffer()
        piece.append("abc")
        unsafe exchange.heldBody.append(piece.bytes, upTo: 3)
        exchange.end()
        let (client, network) = (exchange.record.forwardedClient, exchange.record.forwardedNetwork)
        let (route, isEmpty) = (exchange.forwarding.headerRules.route, exchange.heldBody.isEmpty)
        #expect(client == [] && network == [] && route == -1 && isEmpty)
    }

    @Test(arguments: [(.local, false), (.upstream, true), (.none, true)] as [(Exchange.Responder, Bool)])
    func `a local exchange ends with its handler`(_ responder: Exchange.Responder, _ keepsHandler: Bool) {
        var exchange = Exchange()
        exchange.responder = responder
        exchange.local.handler = { _ in LocalResponse(status: 204, fields: [], body: []) }
        // One that responds without the client's head, as the health of a listener does, is no echo.
        let isEcho = exchange.local.isEcho
        #expect(!isEcho)
        exchange.end()
        let hasHandler = exchange.local.handler != nil
        #expect(hasHandler == keepsHandler)
    }

    @Test(
        arguments: [
            (.get, true), (.head, true), (.put, true), (.delete, true), (.options, true), (.trace, true),
            (.post, false), (.patch, false), (.connect, false), (.other, false),
        ] as [(Method, Bool)])
    func `a request may be repeated while no body was read, if its method is idempotent`(
        _ method: Method, _ expected: Bool
    ) {
        let framings: [BodyFraming] = [.none, .length(0), .length(1), .length(Int.max), .chunked, .untilClose]
        for framing in framings {
            var exchange = Exchange()
            exchange.request.method = method
            exchange.body.framing = framing
            let isRepeatable = exchange.isRepeatable
            #expect(isRepeatable == expected, "\(framing)")
            guard case .length(1...) = framing else { continue }
            exchange.body.expect()
            var offset = 0
            _ = exchange.body.next([0x61].span, from: &offset, isStream: false, mayHaveTrailers: false)
            let isStillRepeatable = exchange.isRepeatable
            #expect(!isStillRepeatable, "\(framing)")
        }
    }

    @Test func `the gateway's own 100 is the only one`() {
        var exchange = Exchange()
        exchange.begin(downstream: Self.downstream, now: 0)
        exchange.request.expectsContinue = true
        exchange.responder = .upstream
        let before = exchange.awaitsContinue
        exchange.request.hasContinued = true
        let after = exchange.awaitsContinue
        var response = UpstreamResponse()
        let action = response.interim(status: 100, bytes: 25, for: &exchange.request)
        #expect(before && !after && action == .discard)
    }
}

@Suite struct BodyFramingPropertiesTests {
    /// The properties that hold, in the order of the names.
    private func properties(of framing: BodyFraming) -> String {
        let all = [
            ("empty", framing.isEmpty), ("unbounded", framing.isUnbounded), ("none", framing.isNone),
            ("chunked", framing.isChunked), ("until close", framing.isUntilClose),
        ]
        return all.filter { $0.1 }.map { $0.0 }.joined(separator: ", ")
    }

    @Test(
        arguments: [
            (BodyFraming.none, "empty, none"), (.length(0), "empty"), (.length(1), ""), (.length(Int.max), ""),
            (.chunked, "unbounded, chunked"), (.untilClose, "unbounded, until close"),
        ] as [(BodyFraming, String)])
    func `follow from the framing`(_ framing: BodyFraming, _ expected: String) {
        #expect(properties(of: framing) == expected)
    }
}
