import WorldMachine

/// Bytes that one side of a tunnel, or of a long response, sends, with the time of each.
final class Flow {
    private var sent: [UInt8] = []
    private var marks: [(end: Int, time: Int64)] = []
    private var mark = 0
    private(set) var received = 0
    /// Whether the sender has sent all that it wanted to.
    var isEnded = false

    func send(_ bytes: [UInt8], at time: Int64) {
        sent += bytes
        marks.append((sent.count, time))
    }

    /// - Returns: when the last of the bytes was sent; `nil` if other bytes were.
    func receive(_ bytes: [UInt8]) -> Int64? {
        guard received + bytes.count <= sent.count, sent[received..<received + bytes.count].elementsEqual(bytes) else {
            return nil
        }
        received += bytes.count
        while mark < marks.count - 1, marks[mark].end < received { mark += 1 }
        return marks.isEmpty ? nil : marks[mark].time
    }

    var isWhole: Bool { isEnded && received == sent.count }
}

extension Ledger {
    /// How long a connection may live on after its credential, in nanoseconds.
    private static let afterlife: Int64 = 1_500_000_000

    /// Bytes have passed a gateway in a tunnel or a long response.
    func passed(_ bytes: [UInt8], of flow: Flow, _ exchange: Exchange, _ direction: String) {
        guard !bytes.isEmpty else { return }
        guard let time = flow.receive(bytes) else {
            return violate(
                .body, "\(bytes.count) bytes \(direction) in request \(exchange.number) at \(flow.received) are others")
        }
        guard let grace = exchange.path.hasPrefix("/ws/aged/") ? simulation.plan.agedGrace : 0 else { return }
        // A complete request that waits for its response was allowed; what follows a head is looked at.
        let begun = exchange.headAt > 0 ? exchange.headAt : simulation.machine.now
        if time > max(min(exchange.expires, .max / 4), begun) + Self.afterlife + grace + simulation.plan.skew {
            violate(
                .revocation,
                "request \(exchange.number) passed bytes \(direction) of \((time - exchange.expires) / 1_000_000) ms after "
                    + "its credential had expired")
        }
        guard case .session(let session) = exchange.proof, let end = session.end, !session.isUnsure,
            simulation.knows(since: end.time)
        else { return }
        // An instance without its store hears of an end when it has the store again.
        let isSame = end.gateway == exchange.gateway && exchange.incarnation == end.incarnation
        let known = isSame ? end.time : max(end.time, simulation.storeOutage(at: end.time))
        guard time > max(known, begun) + Self.afterlife + grace else { return }
        violate(
            .revocation,
            "request \(exchange.number) at gateway \(exchange.gateway) passed bytes \(direction) of "
                + "\((time - end.time) / 1_000_000) ms after session \(session.id) was ended at gateway \(end.gateway)")
    }
}

extension Plan {
    /// When the gateways have the store again that they do not have at a time, or shortly after it.
    func storeOutage(at time: Int64) -> Int64 {
        let outages = faults.filter { fault in
            switch fault.kind {
            case .redisDies, .redisHangs, .redisUnreachable, .redisCutFrom, .redisCondition, .redisLags,
                .redisFailsOver, .redisLosesAll, .storm, .callFails, .restart, .kill:
                fault.at < time + 2_000_000_000 && time < fault.at + fault.duration + 15_000_000_000
            default: false
            }
        }
        return outages.map { $0.at + $0.duration + 25_000_000_000 }.max() ?? 0
    }

    /// Routes with tunnels and long responses.
    var longRoutes: String {
        """
        - name: ws
          match: {path: "/ws/**"}
          auth: {providers: [\(callers.providers)]}
          headers: {set: {X-User-Id: {attribute: subject}}}
          upgrade: [websocket]
          upstream: plain
        - name: sse
          match: {path: "/sse/**"}
          auth: {providers: [\(callers.providers)]}
          headers: {set: {X-User-Id: {attribute: subject}}}
          upstream: app

        """
    }
}
