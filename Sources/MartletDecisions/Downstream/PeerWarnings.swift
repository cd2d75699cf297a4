package import MartletCore

/// Warnings about what peers send, one an hour for each peer and cause: whatever they send, the log stays readable.
package final class PeerWarnings: Sendable {
    private struct Key: Hashable {
        package let cause: String
        package let peer: String
    }

    private static let interval: Int64 = 3_600_000_000_000
    /// How many peers of a cause are kept; while there are so many, no other one is logged.
    private static let maximumPeers = 64

    private let logger: Logger
    /// Until when a warning is not repeated.
    private let logged = Lock<[Key: Int64]>([:])

    package init(_ logger: Logger) { self.logger = logger }

    /// A peer that is not in `trusted_proxies` has sent a field that only proxies may send.
    package func ignoredField(_ name: String, of peer: String, at now: Int64) {
        guard isNew(Key(cause: "forwarding", peer: peer), at: now) else { return }
        logger.warning(
            "forwarded fields of an untrusted peer ignored", ("peer", peer), ("field", name),
            ("hint", "if the peer is a proxy of yours, list it in server.trusted_proxies"))
    }

    /// A connection was closed because of its PROXY header.
    package func rejectedProxyHeader(_ code: ErrorCode, of peer: String, at now: Int64) {
        guard isNew(Key(cause: "\(code)", peer: peer), at: now) else { return }
        logger.warning("PROXY header rejected", ("code", "\(code)"), ("client", peer))
    }

    /// No local port was left for a connection to an address.
    package func noLocalPort(to address: String, at now: Int64) {
        guard isNew(Key(cause: "ports", peer: address), at: now) else { return }
        logger.warning(
            "no local port left for connections to an upstream", ("address", address),
            (
                "hint",
                "net.ipv4.ip_local_port_range bounds the connections to one address; keep them open, or add addresses"
            ))
    }

    private func isNew(_ key: Key, at now: Int64) -> Bool {
        logged.withLock { logged in
            if let end = logged[key], now < end { return false }
            if logged.count(where: { $0.key.cause == key.cause }) >= Self.maximumPeers {
                logged = logged.filter { now < $0.value }
                guard logged.count(where: { $0.key.cause == key.cause }) < Self.maximumPeers else { return false }
            }
            logged[key] = now &+ Self.interval
            return true
        }
    }
}
