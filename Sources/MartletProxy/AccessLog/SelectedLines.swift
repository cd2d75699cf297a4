internal import MartletAuthenticator
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletIO
internal import MartletResponder
internal import MartletTLS

/// Writes access lines where `log.access` says what they have, or which there are.
enum SelectedLines {
    /// Writes the record of an exchange, if a plan says what it has and whether there is one; without a plan, prepares
    /// the texts of its key.
    /// - Returns: whether there is a plan.
    @inline(never)
    static func write(
        _ exchange: Handle<Exchange>, _ microseconds: Int, orPrepare key: AccessKey, _ loop: inout LoopState
    ) -> Bool {
        guard let plan = loop.context.logs.access.plan else {
            prepare(key, exchange, &loop.exchanges, &loop.upstreams, &loop.context)
            return false
        }
        let candidate = AccessSampling.Candidate(
            status: loop.exchanges[exchange].response.status, isRejected: loop.exchanges[exchange].record.reason != 0,
            isProbe: isProbe(exchange, &loop.exchanges, &loop.downstreams))
        let decision = loop.context.logs.access.sampling.decide(candidate, plan)
        guard decision != .drop else { return true }
        var line = SelectedLine()
        line.isSampled = decision == .writeSampled
        line.milliseconds = loop.context.clock.unixMilliseconds
        line.microseconds = microseconds
        describe(exchange, &line, &loop.exchanges)
        describeConnection(of: exchange, &line, &loop.exchanges, &loop.downstreams, &loop.context)
        line.names = names(of: exchange, &loop.exchanges, &loop.upstreams, &loop.context)
        if plan.needsNotes { line.notes = loop.context.logs.access.notes.entry(of: exchange) }
        let lent = unsafe loop.exchanges.all.address(of: exchange)
        unsafe loop.context.logs.access.append(line, &lent.pointee.record.texts, plan)
        return true
    }

    /// Shows the record of an exchange to whoever watches requests.
    @inline(never)
    static func show(_ exchange: Handle<Exchange>, _ microseconds: Int, _ loop: inout LoopState) {
        guard let watcher = loop.context.logs.watcher, let plan = AccessPlan.events, watcher.wantsLine() else { return }
        var line = SelectedLine()
        line.milliseconds = loop.context.clock.unixMilliseconds
        line.microseconds = microseconds
        describe(exchange, &line, &loop.exchanges)
        describeConnection(of: exchange, &line, &loop.exchanges, &loop.downstreams, &loop.context)
        line.names = names(of: exchange, &loop.exchanges, &loop.upstreams, &loop.context)
        var out = ByteBuffer(capacity: 1024)
        let lent = unsafe loop.exchanges.all.address(of: exchange)
        unsafe SelectedLineWriter(plan, .json, instanceID: []).write(line, &lent.pointee.record.texts, into: &out)
        watcher.finished(out.array)
    }

    /// Whether a listener's own handler has responded to a request that changes nothing.
    private static func isProbe(
        _ exchange: Handle<Exchange>, _ exchanges: inout Exchanges, _ downstreams: inout DownstreamConnections
    ) -> Bool {
        let method = exchanges[exchange].request.method
        return exchanges[exchange].record.routeSlot == .noRoute && (method == .get || method == .head)
            && downstreams[exchanges[exchange].downstream].origin.handler != nil
    }

    private static func describe(
        _ exchange: Handle<Exchange>, _ line: inout SelectedLine, _ exchanges: inout Exchanges
    ) {
        line.status = exchanges[exchange].response.status
        line.isCheck = !exchanges[exchange].request.check.isEmpty
        line.bytesIn = exchanges[exchange].record.bytesIn
        line.bytesOut = exchanges[exchange].record.bytesOut
        line.retries = max(exchanges[exchange].forwarding.attempts - 1, 0)
        if exchanges[exchange].isStream {
            line.protocolVersion = "HTTP/2"
        } else if exchanges[exchange].request.isHTTP10 {
            line.protocolVersion = "HTTP/1.0"
        }
    }

    private static func describeConnection(
        of exchange: Handle<Exchange>, _ line: inout SelectedLine, _ exchanges: inout Exchanges,
        _ downstreams: inout DownstreamConnections, _ context: inout LoopContext
    ) {
        let downstream = exchanges[exchange].downstream
        let connection =
            downstreams[downstream].isStream ? downstreams[downstream].stream.connection : downstream
        guard downstreams.all.contains(connection) else { return }
        if let version = downstreams[connection].transport.engine?.version {
            line.tlsVersion = Array(version.utf8)
        }
        let id = downstreams[connection].origin.listener
        // Of a listener that is gone, the connection knows the address.
        let socket =
            downstreams.acceptor.index(ofListener: id).map { downstreams.acceptor.listeners[$0].fd }
            ?? downstreams[connection].transport.fd
        line.listener = context.logs.access.address(ofListener: id) {
            Socket.localAddress(socket).map { Array($0.description.utf8) } ?? []
        }
    }

    /// Notes what an upstream's response says, and how long its head took.
    @inline(never)
    static func note(
        status: Int, _ exchange: Handle<Exchange>, _ exchanges: inout Exchanges, _ context: inout LoopContext
    ) {
        guard context.logs.access.plan?.notesResponses == true else { return }
        let waited = context.now &- exchanges[exchange].forwarding.sentAt
        context.logs.access.notes.note(status: status, microseconds: Int(waited / 1000), of: exchange)
    }

    /// Switches to other settings of the access log; connections that are open follow.
    static func adopt(
        _ settings: AccessLogSettings?, _ downstreams: inout DownstreamConnections, _ context: inout LoopContext
    ) {
        context.logs.access.configurationChanged(settings)
        let isNoted = context.logs.access.needsNotes
        // Streams keep the address of the slot's last use, where that was a stream of the same connection.
        downstreams.all.updateAll { $0.origin.address.isNoted = isNoted }
    }

    /// Prepares the texts that the log uses for all exchanges with this key.
    @inline(never)
    private static func prepare(
        _ key: AccessKey, _ exchange: Handle<Exchange>, _ exchanges: inout Exchanges,
        _ upstreams: inout UpstreamConnections, _ context: inout LoopContext
    ) {
        let names = names(of: exchange, &exchanges, &upstreams, &context)
        context.logs.access.prepare(
            key, route: names.route, reason: names.reason, member: names.member, condition: names.condition,
            provider: names.provider, upstream: names.upstream)
    }

    /// The texts of an exchange that it shares with others.
    private static func names(
        of exchange: Handle<Exchange>, _ exchanges: inout Exchanges, _ upstreams: inout UpstreamConnections,
        _ context: inout LoopContext
    ) -> SelectedLine.Names {
        let provider = Int(exchanges[exchange].credential.provider)
        let endpoint = exchanges[exchange].forwarding.endpoint
        let reason = Int(exchanges[exchange].record.reason)
        return SelectedLine.Names(
            route: context.counters.routes.texts[Int(exchanges[exchange].record.routeSlot.rawValue)],
            reason: context.counters.reasons.texts[reason], member: context.counters.reasons.members[reason],
            condition: context.counters.reasons.conditions[reason],
            provider: provider >= 0 && provider < context.snapshot.providerTexts.count
                ? context.snapshot.providerTexts[provider] : [],
            upstream: endpoint.isNone ? [] : upstreams.directory.endpoints[Int(endpoint)].text)
    }
}
