import MartletConfig
import MartletTraffic

/// The upstreams that share the requests of a route.
///
/// Who gets which one depends on the caller and the names and weights of the upstreams alone (weighted rendezvous
/// hashing): every instance decides alike, and so does every route with the same list. A weight that grows takes callers
/// from the other upstreams and gives none away, so that a growing canary keeps who is on it.
package final class RouteSplit: Sendable {
    /// One of the upstreams.
    package struct Share: Sendable {
        /// The index of the upstream in the configuration.
        package let upstream: Int
        package let weight: Int
        fileprivate let hash: UInt64
    }

    /// In file order.
    package let shares: [Share]

    /// - Parameter shares: at least one with a weight; `index` is that of the upstream in the configuration.
    init(_ shares: [(share: SplitShare, index: Int)]) {
        self.shares = shares.map { share, index in
            Share(
                upstream: index, weight: share.weight, hash: RendezvousHash.hash(share.upstream.value.utf8))
        }
    }

    /// The upstream of a caller.
    /// - Parameter key: a hash of an authenticated caller's subject that is the same in every process, or
    ///   ``key(ofAddress:)``.
    package func upstream(for key: UInt64) -> Int {
        var best = (upstream: shares.first?.upstream ?? -1, score: Double.infinity)
        for share in shares {
            let score = RendezvousHash.weightedScore(key, share.hash, weight: Int64(share.weight))
            if score < best.score { best = (share.upstream, score) }
        }
        return best.upstream
    }

    /// The key of an anonymous client: its address, of which a /64 counts unless it is an IPv4 address.
    /// - Parameter bytes: 16 bytes in network order; anything else is no address, and all such clients are alike.
    package static func key(ofAddress bytes: [UInt8]) -> UInt64 {
        guard bytes.count == 16 else { return 0 }
        let isMapped = bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 0xFF && bytes[11] == 0xFF
        return RendezvousHash.hash(isMapped ? bytes[12...] : bytes[..<8])
    }
}

extension Route {
    /// The indices of its upstreams in the configuration; empty where the gateway responds itself.
    package var upstreams: [Int] { split?.shares.map(\.upstream) ?? (upstream < 0 ? [] : [upstream]) }

    /// The index of the upstream that gets the requests of a caller; −1 where the gateway responds itself.
    /// - Parameter key: see ``RouteSplit/upstream(for:)``.
    package func upstream(for key: UInt64) -> Int { split?.upstream(for: key) ?? upstream }
}
