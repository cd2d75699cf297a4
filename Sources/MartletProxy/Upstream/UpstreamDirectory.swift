package import MartletConfig
internal import MartletCore
internal import MartletIO

/// The endpoints that a loop sends to: where they are, how busy they are, and how well they did lately.
struct UpstreamDirectory: ~Copyable {
    /// One endpoint as this loop sees it.
    ///
    /// Its index is stable; a retired one is reused once nothing refers to it.
    struct Endpoint {
        let address: EndpointAddress
        /// What `host: endpoint` sends.
        let hostValue: [UInt8]
        /// For logs and metrics.
        let text: [UInt8]
        /// How it is spoken to.
        var wire: EndpointWire
        /// HTTP/2 connections that may carry more.
        var connections: [Int32] = []
        var places: [SocketEndpoint]
        var nextPlace = 0
        var active = 0
        /// Idle links, the one used last at the end.
        var idle: [Int32] = []
        var failures = 0
        var ejections = 0
        var ejectedUntil: Int64 = 0
        var isOnTrial = false
        var isRetired = false
    }

    /// Failures in a row after which an endpoint is left out for a while.
    private static let failureLimit = 5
    private static let longestEjection: Int64 = 60_000_000_000

    var endpoints = FlatList<Endpoint>()
    private var known: [EndpointKey: Int32] = [:]
    /// Upstreams by a number that is stable across reloads, because it goes by name.
    private(set) var groups = FlatList<Group>()
    private var groupOfName: [String: Int32] = [:]
    /// For each upstream of the present snapshot, its group.
    private(set) var groupOfUpstream: [Int32] = []

    /// Endpoints that are spoken to in different ways are different endpoints.
    private struct EndpointKey: Hashable {
        let address: EndpointAddress
        let wire: UpstreamWire
    }

    /// One upstream.
    struct Group {
        var upstream: Upstream
        var members: [Int32]
        var rotation = 0
    }

    /// Takes over a new configuration; endpoints that stay keep their links and their record.
    /// - Returns: the endpoints that are not used any more.
    @discardableResult
    mutating func adopt(_ snapshot: Snapshot, resolved: [ResolvedName]) -> [Int32] {
        groupOfUpstream.removeAll()
        var used: Set<Int32> = []
        for upstream in snapshot.upstreams {
            let group = enter(upstream)
            groupOfUpstream.append(group)
            used.formUnion(groups[Int(group)].members)
        }
        var retired: [Int32] = []
        for index in endpoints.indices {
            let wasRetired = endpoints[index].isRetired
            endpoints[index].isRetired = !used.contains(Int32(index))
            if endpoints[index].isRetired && !wasRetired { retired.append(Int32(index)) }
        }
        resolve(resolved)
        return retired
    }

    private mutating func enter(_ upstream: Upstream) -> Int32 {
        var members: [Int32] = []
        for address in upstream.endpoints { members.append(enter(address, upstream)) }
        if let index = groupOfName[upstream.name] {
            groups[Int(index)].upstream = upstream
            groups[Int(index)].members = members
            return index
        }
        let index = Int32(groups.count)
        groups.append(Group(upstream: upstream, members: members))
        groupOfName[upstream.name] = index
        return index
    }

    private mutating func enter(_ address: EndpointAddress, _ upstream: Upstream) -> Int32 {
        let key = EndpointKey(address: address, wire: upstream.wire)
        let wire = EndpointWire(address, upstream)
        if let index = known[key] {
            // Its files may have been read anew.
            endpoints[Int(index)].wire = wire
            return index
        }
        let (host, places): (String, [SocketEndpoint]) =
            switch address {
            case .http(let host, let port), .https(let host, let port), .h2c(let host, let port):
                (
                    EndpointText.authority(host, port, isSecure: address.isSecure),
                    SocketEndpoint(literal: host, port: port).map { [$0] } ?? []
                )
            case .unix(let path): ("localhost", SocketEndpoint(path: path).map { [$0] } ?? [])
            case .echo: ("localhost", [])
            }
        let index = Int32(endpoints.count)
        endpoints.append(
            Endpoint(
                address: address, hostValue: Array(host.utf8), text: Array(EndpointText.url(address).utf8),
                wire: wire, places: places))
        known[key] = index
        return index
    }

    /// Takes over new addresses of host names.
    mutating func resolve(_ names: [ResolvedName]) {
        for name in names where !name.addresses.isEmpty {
            for index in endpoints.indices where endpoints[index].address == name.endpoint {
                endpoints[index].places = name.addresses
            }
        }
    }

    // MARK: Balancing

    /// Chooses an endpoint of a group.
    /// - Parameters:
    ///   - hash: what `balance: hash` goes by.
    ///   - avoiding: the endpoint that just failed the request, −1 for none.
    mutating func choose(_ index: Int32, hash: UInt64, avoiding: Int32, now: Int64) -> Int32? {
        // Asked in place: most upstreams have one endpoint, and a copy of the members would be counted in and out.
        guard groups[Int(index)].members.count > 1 else { return groups[Int(index)].members.first }
        return chooseAmong(index, hash: hash, avoiding: avoiding, now: now)
    }

    @inline(never)
    private mutating func chooseAmong(_ index: Int32, hash: UInt64, avoiding: Int32, now: Int64) -> Int32? {
        let group = groups[Int(index)].members
        let balance = groups[Int(index)].upstream.balance
        groups[Int(index)].rotation = (groups[Int(index)].rotation &+ 1) % group.count
        let start = balance.isHash ? Int(hash % UInt64(group.count)) : groups[Int(index)].rotation
        var best: Int32?
        for step in 0..<group.count {
            let index = group[(start + step) % group.count]
            guard index != avoiding, isUsable(index, now) else { continue }
            guard case .leastRequests = balance else { return index }
            if let current = best, endpoints[Int(current)].active <= endpoints[Int(index)].active { continue }
            best = index
        }
        if let best { return best }
        return group.filter { $0 != avoiding }
            .min { left, right in endpoints[Int(left)].ejectedUntil < endpoints[Int(right)].ejectedUntil }
            ?? group.first
    }

    private func isUsable(_ index: Int32, _ now: Int64) -> Bool {
        endpoints[Int(index)].ejections == 0
            || (endpoints[Int(index)].ejectedUntil <= now && !endpoints[Int(index)].isOnTrial)
    }

    /// A request is on its way to an endpoint; one that was ejected is on trial with it.
    mutating func began(_ index: Int32) {
        endpoints[Int(index)].active &+= 1
        if endpoints[Int(index)].ejections > 0 { endpoints[Int(index)].isOnTrial = true }
    }

    /// A request has left an endpoint.
    mutating func ended(_ index: Int32) {
        endpoints[Int(index)].active &-= 1
        endpoints[Int(index)].isOnTrial = false
    }

    /// An endpoint answered.
    mutating func succeeded(_ index: Int32) {
        guard endpoints[Int(index)].failures > 0 || endpoints[Int(index)].ejections > 0 else { return }
        endpoints[Int(index)].failures = 0
        endpoints[Int(index)].ejections = 0
        endpoints[Int(index)].isOnTrial = false
    }

    /// An endpoint failed a request: a refused connect at once, other failures after five in a row, and a failed trial
    /// leave it out for 1 s, doubling to 60 s.
    mutating func failed(_ index: Int32, refused: Bool, now: Int64) {
        let place = Int(index)
        endpoints[place].failures &+= 1
        let wasEjected = endpoints[place].ejections > 0
        guard refused || wasEjected || endpoints[place].failures >= UpstreamDirectory.failureLimit else { return }
        if wasEjected && endpoints[place].ejectedUntil > now { return }
        let span = Int64(1_000_000_000) << Int64(min(endpoints[place].ejections, 6))
        endpoints[place].ejectedUntil = now &+ min(span, UpstreamDirectory.longestEjection)
        endpoints[place].ejections &+= 1
        endpoints[place].isOnTrial = false
    }

    /// The next address to connect to; names with several addresses take turns.
    mutating func place(of index: Int32) -> SocketEndpoint? {
        let places = endpoints[Int(index)].places
        guard !places.isEmpty else { return nil }
        endpoints[Int(index)].nextPlace = (endpoints[Int(index)].nextPlace &+ 1) % places.count
        return places[endpoints[Int(index)].nextPlace]
    }

    /// How every endpoint is.
    func report(now: Int64) -> [EndpointReport] {
        var reports: [EndpointReport] = []
        for number in groupOfUpstream {
            let group = groups[Int(number)]
            for index in group.members {
                let endpoint = endpoints[Int(index)]
                reports.append(
                    EndpointReport(
                        upstream: group.upstream.name, endpoint: String(decoding: endpoint.text, as: UTF8.self),
                        idle: endpoint.idle.count, active: endpoint.active, failures: endpoint.failures,
                        isEjected: endpoint.ejections > 0 && endpoint.ejectedUntil > now))
            }
        }
        return reports
    }
}

/// Endpoints as text.
package enum EndpointText {
    /// `http://127.0.0.1:9000`, `unix:/path`, `builtin:echo`.
    package static func url(_ address: EndpointAddress) -> String {
        switch address {
        case .http(let host, let port): "http://\(authority(host, port, isSecure: false))"
        case .https(let host, let port): "https://\(authority(host, port, isSecure: true))"
        case .h2c(let host, let port): "h2c://\(authority(host, port, isSecure: false))"
        case .unix(let path): "unix:\(path)"
        case .echo: "builtin:echo"
        }
    }

    static func authority(_ host: String, _ port: UInt16, isSecure: Bool) -> String {
        let name = host.contains(":") ? "[\(host)]" : host
        return port == (isSecure ? 443 : 80) ? name : "\(name):\(port)"
    }
}

extension EndpointAddress {
    /// Whether it is spoken to under TLS.
    var isSecure: Bool { if case .https = self { true } else { false } }
}

extension UpstreamConfiguration.Balance {
    var isHash: Bool { if case .hash = self { true } else { false } }
}
