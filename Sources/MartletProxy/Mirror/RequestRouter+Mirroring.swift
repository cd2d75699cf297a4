internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletUpstreams

/// Copies of requests for another upstream, on routes with `mirror`.
extension RequestRouter {
    /// Copies a request whose head for its upstream was written, if it is chosen.
    ///
    /// One without a body is handed over now, and any other one when its body has arrived (``BodyWatch``): a client
    /// that stops in the middle has sent no request.
    @inline(never)
    mutating func mirror(
        _ exchange: Handle<Exchange>, route: Int, _ bytes: UnsafeBufferPointer<UInt8>, _ exchanges: inout Exchanges,
        _ context: inout LoopContext
    ) {
        guard let plan = context.snapshot.routeRules[route].mirror else { return }
        let framing = exchanges[exchange].body.framing
        let candidate = MirrorPlan.Candidate(
            isUpgrade: !exchanges[exchange].tunnel.isNone, isGRPC: exchanges[exchange].request.isGRPC,
            framing: framing)
        guard plan.includes(candidate, random: context.scratch.samples.next()),
            let receiver = context.threads.mirror
        else { return }
        let isComplete = exchanges[exchange].body.isComplete
        let permit = isComplete ? nil : receiver.admit(for: plan.upstream)
        guard isComplete || permit != nil else { return }
        let lent = unsafe exchanges.all.address(of: exchange)
        let request = unsafe MirrorRequest(
            upstream: plan.upstream, head: Array(lent.pointee.forwarding.head.bytes),
            host: plan.host(authority: bytes[head.authority]), fields: plan.fields, body: framing.isNone ? nil : [],
            isRepeatable: isComplete && lent.pointee.request.method.isIdempotent)
        guard let permit else { return receiver.send(request) }
        var expected: Int?
        if case .length(let count) = framing { expected = count }
        exchanges[exchange].bodyWatch.collect(MirrorCopy(request, expecting: expected, permit))
    }
}
