import WorldMachine

/// When traffic has ended for a while, nothing of it is left: descriptors, and what the gateways count.
final class Bounds {
    private unowned let simulation: Simulation
    private var waiting = 0
    var isDone: Bool { waiting == 0 }

    /// Gauges that are 0 without traffic.
    private static let gauges = [
        "martlet_proxy_connections_open", "martlet_proxy_exchanges_open", "martlet_http2_connections_open",
        "martlet_http2_streams_open", "martlet_proxy_tunnels_open", "martlet_proxy_upstream_connections_idle",
        "martlet_proxy_upstream_requests_active", "martlet_server_hashes_waiting",
    ]

    init(_ simulation: Simulation) {
        self.simulation = simulation
        for gateway in simulation.gateways where !gateway.process.isDead {
            checkDescriptors(gateway)
            readMetrics(gateway)
        }
    }

    private func violate(_ gateway: Gateway, _ what: String) {
        simulation.ledger.violate(.bounds, "\(gateway.process.name) without traffic: \(what)")
    }

    private func checkDescriptors(_ gateway: Gateway) {
        for (kind, count) in simulation.machine.descriptors(of: gateway.process) {
            let first = gateway.descriptors.first { $0.kind == kind }?.count ?? 0
            let most: Int =
                switch kind {
                // Connections of SQLite open their files when they first read, and there are few of them.
                case "RealFile": first + 4
                // One that could not be made at this start, for want of descriptors, is made later.
                case "EventCounter": simulation.gateways.map(\.mostCounters).max() ?? first
                // The store's connections stand before or after the start, some for each server.
                case "Stream to port 6379", "Stream to port 26379": 40
                // Those to issuers are kept for the next call.
                case _ where kind.hasPrefix("Stream to port 91"): 8
                // Each loop keeps eight pipes.
                case "PipeEnd": simulation.plan.workers * 16
                default: first
                }
            if count > most { violate(gateway, "\(count) descriptors of kind \(kind), \(most) at its start") }
        }
    }

    private func readMetrics(_ gateway: Gateway, attempt: Int = 0) {
        if attempt == 0 { waiting += 1 }
        let peer = Peer.connect(
            simulation.machine, from: Address(251, 1000 + attempt), to: Address(gateway.index, 9901))
        var reader = MessageReader(isResponse: true)
        var (head, body): (MessageHead?, [UInt8]) = (nil, [])
        peer.received = { bytes in
            for piece in reader.read(bytes) {
                switch piece {
                case .head(let found): head = found
                case .body(let part): body += part
                case .end:
                    peer.close()
                    self.waiting -= 1
                    self.check(gateway, head, String(decoding: body, as: UTF8.self))
                case .invalid(let reason): self.violate(gateway, "/metrics is no HTTP: \(reason)")
                }
            }
        }
        // The network may have broken the connection.
        peer.ended = { _ in
            self.simulation.machine.after(500_000_000) { self.readMetrics(gateway, attempt: attempt + 1) }
        }
        peer.send("GET /metrics HTTP/1.1\r\nHost: 10.0.0.\(gateway.index):9901\r\nAccept: text/plain\r\n\r\n")
    }

    private func check(_ gateway: Gateway, _ head: MessageHead?, _ text: String) {
        guard head?.status == 200 else { return violate(gateway, "/metrics has \(head?.start ?? "no response")") }
        var found: Set<Substring> = []
        for line in text.split(separator: "\n") where !line.hasPrefix("#") {
            let parts = line.split(separator: " ")
            guard parts.count >= 2, let name = parts[0].split(separator: "{").first else { continue }
            found.insert(name)
            let isZero = Double(parts[1]) == 0
            if !isZero, Self.gauges.contains(String(name)) { violate(gateway, "\(line)") }
            if name == "martlet_bulkhead_calls", !isZero { violate(gateway, "\(line)") }
            if name == "martlet_proxy_loops_answering", Double(parts[1]) != Double(simulation.plan.workers) {
                violate(gateway, "\(line)")
            }
        }
        for gauge in Self.gauges where !found.contains(gauge[...]) { violate(gateway, "/metrics has no \(gauge)") }
    }
}
