internal import MartletAuthenticator
internal import MartletCore
internal import MartletDecisions
internal import MartletHTTP
internal import MartletIO
internal import MartletResponder
internal import MartletTLS

/// Collects what access lines say of exchanges: the writer of lines knows nothing of these.
enum AccessRecords {
    /// Writes the access line of an exchange, if it has one.
    @inline(__always)
    static func write(
        _ exchange: Handle<Exchange>, microseconds: Int, _ exchanges: inout Exchanges,
        _ downstreams: inout DownstreamConnections, _ directory: inout UpstreamDirectory,
        _ context: inout LoopContext
    ) {
        context.logs.access.facts.bytesIn = exchanges[exchange].record.bytesIn
        context.logs.access.facts.bytesOut = exchanges[exchange].record.bytesOut
        context.logs.access.facts.microseconds = microseconds
        context.logs.access.facts.unixTime = context.unixTime
        let key = AccessKey(
            route: exchanges[exchange].record.routeSlot.rawValue,
            endpoint: exchanges[exchange].forwarding.endpoint.rawValue,
            status: exchanges[exchange].response.status, reason: exchanges[exchange].record.reason,
            provider: exchanges[exchange].credential.provider, isCheck: !exchanges[exchange].request.check.isEmpty)
        let slot = key.slot
        if context.logs.access.isSelective || !context.logs.access.isPrepared(for: key, at: slot) {
            guard prepare(key, exchange, &exchanges, &downstreams, &directory, &context) else {
                return
            }
        }
        let lent = unsafe exchanges.all.address(of: exchange)
        unsafe context.logs.access.append(&lent.pointee.record.texts, at: slot)
    }

    /// Collects the facts of an exchange and prepares its key, unless a plan says that it has no line.
    /// - Returns: whether it has one.
    @inline(never)
    static func prepare(
        _ key: AccessKey, _ exchange: Handle<Exchange>, _ exchanges: inout Exchanges,
        _ downstreams: inout DownstreamConnections, _ directory: inout UpstreamDirectory,
        _ context: inout LoopContext
    ) -> Bool {
        // A probe is for a listener's own handler, and changes nothing.
        let method = exchanges[exchange].request.method
        let weight = context.logs.access.plan.weight(
            status: exchanges[exchange].response.status, isRejected: exchanges[exchange].record.reason != 0,
            isProbe: exchanges[exchange].record.routeSlot == .noRoute && (method == .get || method == .head)
                && downstreams[exchanges[exchange].downstream].origin.handler != nil,
            random: { context.logs.access.numbers.next() })
        guard let weight else { return false }
        var facts = facts(of: exchange, &exchanges, &downstreams, &directory, &context)
        facts.weight = weight
        facts.instanceID = context.logs.access.facts.instanceID
        context.logs.access.facts = facts
        guard !context.logs.access.isPrepared(for: key, at: key.slot) else { return true }
        let lent = unsafe exchanges.all.address(of: exchange)
        unsafe context.logs.access.prepare(key, &lent.pointee.record.texts)
        return true
    }

    /// Shows the record of an exchange to whoever watches requests.
    @inline(never)
    static func show(
        _ exchange: Handle<Exchange>, _ exchanges: inout Exchanges, _ downstreams: inout DownstreamConnections,
        _ directory: inout UpstreamDirectory, _ context: inout LoopContext
    ) {
        guard let watcher = context.logs.watcher, watcher.wantsLine() else { return }
        var facts = facts(of: exchange, &exchanges, &downstreams, &directory, &context)
        var template = AccessTemplate()
        let lent = unsafe exchanges.all.address(of: exchange)
        template.compile(AccessPlan.events.columns(.json))
        var out = ByteBuffer(capacity: 1024)
        out.append("{")
        out = unsafe template.write(&facts, &lent.pointee.record.texts, out)
        out.endLine(.json)
        watcher.finished(out.array)
    }

    /// Notes what an upstream's response says, and how long its head took.
    @inline(never)
    static func note(
        status: Int, _ exchange: Handle<Exchange>, _ exchanges: inout Exchanges, _ context: inout LoopContext
    ) {
        guard context.logs.access.plan.notesResponses else { return }
        var notes = exchanges[exchange].record.notes ?? AccessNotes()
        notes.status = status
        notes.microseconds = Int((context.now &- exchanges[exchange].forwarding.sentAt) / 1000)
        exchanges[exchange].record.notes = notes
    }

    private static func facts(
        of exchange: Handle<Exchange>, _ exchanges: inout Exchanges, _ downstreams: inout DownstreamConnections,
        _ directory: inout UpstreamDirectory, _ context: inout LoopContext
    ) -> AccessFacts {
        var facts = AccessFacts()
        facts.bytesIn = context.logs.access.facts.bytesIn
        facts.bytesOut = context.logs.access.facts.bytesOut
        facts.microseconds = context.logs.access.facts.microseconds
        facts.status = exchanges[exchange].response.status
        facts.isCheck = !exchanges[exchange].request.check.isEmpty
        facts.route = context.counters.routes.texts[Int(exchanges[exchange].record.routeSlot.rawValue)]
        let reason = Int(exchanges[exchange].record.reason)
        facts.reason = context.counters.reasons.texts[reason]
        facts.member = context.counters.reasons.members[reason]
        facts.condition = context.counters.reasons.conditions[reason]
        let provider = Int(exchanges[exchange].credential.provider)
        if context.snapshot.providerTexts.indices.contains(provider) {
            facts.provider = context.snapshot.providerTexts[provider]
        }
        let endpoint = exchanges[exchange].forwarding.endpoint
        if !endpoint.isNone { facts.upstream = directory.endpoints[Int(endpoint)].text }
        facts.milliseconds = context.clock.unixMilliseconds
        // The same instant in all fields.
        facts.unixTime = context.logs.access.isSelective ? facts.milliseconds / 1000 : context.unixTime
        facts.retries = max(exchanges[exchange].forwarding.attempts - 1, 0)
        if exchanges[exchange].isStream {
            facts.protocolVersion = "HTTP/2"
        } else if exchanges[exchange].request.isHTTP10 {
            facts.protocolVersion = "HTTP/1.0"
        }
        facts.notes = exchanges[exchange].record.notes
        let downstream = exchanges[exchange].downstream
        let connection = downstreams[downstream].isStream ? downstreams[downstream].stream.connection : downstream
        guard downstreams.all.contains(connection) else { return facts }
        facts.tlsVersion = downstreams[connection].transport.engine?.version ?? ""
        let id = downstreams[connection].origin.listener
        // Of a listener that is gone, the connection knows the address.
        let socket =
            downstreams.acceptor.index(ofListener: id).map { downstreams.acceptor.listeners[$0].fd }
            ?? downstreams[connection].transport.fd
        facts.listener = context.logs.access.address(ofListener: id) {
            Socket.localAddress(socket).map { Array($0.description.utf8) } ?? []
        }
        return facts
    }
}
