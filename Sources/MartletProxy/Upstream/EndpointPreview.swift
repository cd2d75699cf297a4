internal import MartletAuthenticator
package import MartletConfig
package import MartletCore
internal import MartletDecisions
internal import MartletIO
internal import MartletTraffic

/// Which endpoint of an upstream a request would get, as far as the configuration and the request alone say it.
package struct EndpointPreview: Sendable {
    /// One endpoint of the file.
    package struct Endpoint: Sendable {
        package let url: String
        /// Why it is not chosen, or when it is; empty where nothing is to be said.
        package let note: String
    }

    /// How one is chosen, in words.
    package let rule: String
    package let endpoints: [Endpoint]
    /// The URL of the one that gets the request; `nil` where load, turn or addresses decide.
    package let chosen: String?

    /// - Parameters:
    ///   - subject: of the caller; `nil` without one, or if it is not known yet.
    ///   - fields: header lines, `Name: value`.
    package init(_ upstream: UpstreamConfiguration, subject: String?, fields: [Secret]) {
        let traffic = TrafficPolicy(upstream)
        var hash: UInt64 = 0
        switch upstream.balance {
        case .leastRequests: rule = "the usable endpoint with the fewest requests"
        case .roundRobin: rule = "the usable endpoints in turn"
        case .hash(let header):
            var values = HeaderHash()
            for value in fields.compactMap({ Self.value(of: header, in: $0) }) { values.add(value.span) }
            hash = values.value
            rule = hash == 0 ? "the one with the fewest requests: no \(header)" : "by the value of \(header)"
        case .hashSubject:
            hash = subject.map { SubjectRevocationID.of($0) } ?? 0
            rule = hash == 0 ? "by the caller's subject, or the fewest requests without one" : "by the caller's subject"
        case .hashAddress: rule = "by the client's address"
        }
        let candidates = upstream.members.map { member in
            var candidate = EndpointCandidate()
            candidate.weight = Int64(member.weight) &* SlowStart.scale
            candidate.isBackup = member.isBackup
            if member.weight == 0 { candidate.condition = .drained }
            candidate.hash = RendezvousHash.hash(EndpointText.url(member.address.value).utf8)
            return candidate
        }
        let usable = candidates.filter { $0.condition != .drained && !$0.isBackup }
        let hasNames = upstream.members.contains { member in
            guard let (host, port) = member.address.value.hostAndPort else { return false }
            return SocketEndpoint(literal: host, port: port) == nil
        }
        var position: Int?
        if usable.count == 1 || (hash != 0 && !hasNames) {
            var balancer = Balancer()
            position =
                balancer.choose(
                    traffic.balance, hash: hash == 0 ? nil : hash, avoiding: nil, panicThreshold: 0,
                    among: candidates.span
                )?.position
        }
        chosen = position.map { EndpointText.url(upstream.members[$0].address.value) }
        endpoints = upstream.members.map { member in
            let note =
                member.weight == 0
                ? "no requests: weight 0"
                : member.isBackup
                    ? "a backup: only while no other is usable" : member.weight == 1 ? "" : "weight \(member.weight)"
            return Endpoint(url: EndpointText.url(member.address.value), note: note)
        }
    }

    /// The value of a header line, if it has this name.
    private static func value(of name: String, in line: Secret) -> [UInt8]? {
        line.withBytes { bytes in
            guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")),
                String(decoding: bytes[..<colon], as: UTF8.self).lowercased() == name
            else { return nil }
            let isBlank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
            return Array(bytes[(colon + 1)...].drop(while: isBlank).reversed().drop(while: isBlank).reversed())
        }
    }
}
