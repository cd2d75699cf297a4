internal import MartletAuthenticator
internal import MartletCore
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
            prepare(key, exchange, &loop)
            return false
        }
        let candidate = AccessSampling.Candidate(
            status: loop.exchanges[exchange].response.status, isRejected: loop.exchanges[exchange].record.reason != 0,
            isProbe: isProbe(exchange, &loop))
        let decision = loop.context.logs.access.sampling.decide(candidate, plan)
        guard decision != .drop else { return true }
        var line = SelectedLine()
        line.isSampled = decision == .writeSampled
        line.milliseconds = loop.context.clock.unixMilliseconds
        line.microseconds = microseconds
        describe(exchange, &line, &loop)
        describeConnection(of: exchange, &line, &loop)
        line.names = names(of: exchange, &loop)
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
        describe(exchange, &line, &loop)
        describeConnection(of: exchange, &line, &loop)
        line.names = names(of: exchange, &loop)
        var out = ByteBuffer(capacity: 1024)
        let lent = unsafe loop.exchanges.all.address(of: exchange)
        unsafe SelectedLineWriter(plan, .json, instanceID: []).write(line, &lent.pointee.record.texts, into: &out)
        watcher.finished(out.array)
    }

    /// Whether a listener's own handler has responded to a request that changes nothing.
    private static func isProbe(_ exchange: Handle<Exchange>, _ loop: inout LoopState) -> Bool {
        let method = loop.exchanges[exchange].request.method
        return loop.exchanges[exchange].record.routeSlot == .noRoute && (method == .get || method == .head)
            && loop.downstreams[loop.exchanges[exchange].downstream].origin.handler != nil
    }

    private static func describe(
        _ exchange: Handle<Exchange>, _ line: inout SelectedLine, _ loop: inout LoopState
    ) {
        line.status = loop.exchanges[exchange].response.status
        line.isCheck = !loop.exchanges[exchange].request.check.isEmpty
        line.bytesIn = loop.exchanges[exchange].record.bytesIn
        line.bytesOut = loop.exchanges[exchange].record.bytesOut
        line.retries = max(loop.exchanges[exchange].forwarding.attempts - 1, 0)
        if loop.exchanges[exchange].isStream {
            line.protocolVersion = "HTTP/2"
        } else if loop.exchanges[exchange].request.isHTTP10 {
            line.protocolVersion = "HTTP/1.0"
        }
    }

    private static func describeConnection(
        of exchange: Handle<Exchange>, _ line: inout SelectedLine, _ loop: inout LoopState
    ) {
        let downstream = loop.exchanges[exchange].downstream
        let connection =
            loop.downstreams[downstream].isStream ? loop.downstreams[downstream].stream.connection : downstream
        guard loop.downstreams.all.contains(connection) else { return }
        if let version = loop.downstreams[connection].transport.engine?.version {
            line.tlsVersion = Array(version.utf8)
        }
        let id = loop.downstreams[connection].origin.listener
        // Of a listener that is gone, the connection knows the address.
        let socket =
            loop.downstreams.acceptor.index(ofListener: id).map { loop.downstreams.acceptor.listeners[$0].fd }
            ?? loop.downstreams[connection].transport.fd
        line.listener = loop.context.logs.access.address(ofListener: id) {
            Socket.localAddress(socket).map { Array($0.description.utf8) } ?? []
        }
    }

    /// Notes what an upstream's response says, and how long its head took.
    @inline(never)
    static func note(status: Int, _ exchange: Handle<Exchange>, _ loop: inout LoopState) {
        guard loop.context.logs.access.plan?.notesResponses == true else { return }
        let waited = loop.now &- loop.exchanges[exchange].forwarding.sentAt
        loop.context.logs.access.notes.note(status: status, microseconds: Int(waited / 1000), of: exchange)
    }

    /// Switches to other settings of the access log; connections that are open follow.
    static func adopt(_ settings: AccessLogSettings?, _ loop: inout LoopState) {
        loop.context.logs.access.configurationChanged(settings)
        let isNoted = loop.context.logs.access.needsNotes
        // Streams keep the address of the slot's last use, where that was a stream of the same connection.
        loop.downstreams.all.updateAll { $0.origin.address.isNoted = isNoted }
    }

    /// Prepares the texts that the log uses for all exchanges with this key.
    @inline(never)
    private static func prepare(_ key: AccessKey, _ exchange: Handle<Exchange>, _ loop: inout LoopState) {
        let names = names(of: exchange, &loop)
        loop.context.logs.access.prepare(
            key, route: names.route, reason: names.reason, member: names.member, condition: names.condition,
            provider: names.provider, upstream: names.upstream)
    }

    /// The texts of an exchange that it shares with others.
    private static func names(of exchange: Handle<Exchange>, _ loop: inout LoopState) -> SelectedLine.Names {
        let provider = Int(loop.exchanges[exchange].credential.provider)
        let endpoint = loop.exchanges[exchange].forwarding.endpoint
        let reason = Int(loop.exchanges[exchange].record.reason)
        return SelectedLine.Names(
            route: loop.context.counters.routes.texts[Int(loop.exchanges[exchange].record.routeSlot.rawValue)],
            reason: loop.context.counters.reasons.texts[reason], member: loop.context.counters.reasons.members[reason],
            condition: loop.context.counters.reasons.conditions[reason],
            provider: provider >= 0 && provider < loop.context.snapshot.providerTexts.count
                ? loop.context.snapshot.providerTexts[provider] : [],
            upstream: endpoint.isNone ? [] : loop.upstreams.directory.endpoints[Int(endpoint)].text)
    }
}
