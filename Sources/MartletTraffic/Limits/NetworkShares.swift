package import MartletCore
package import MartletProvider

/// Divides a bound among the networks of clients.
///
/// A network may have `multiple` times what is still free, and no more: one flood alone leaves the last part to others,
/// several leave a smaller one, and while there is plenty no network is limited.
@usableFromInline package final class NetworkShares: Sendable {
    /// A smaller bound is not divided.
    @inlinable package static var smallestDivided: Int { 64 }

    private let counts = Lock<[ClientNetwork: Int]>([:])
    /// 3 leaves a quarter of the bound to others, 7 an eighth.
    private let multiple: Int

    package init(_ bound: SharedBound) {
        if case .free(let times) = bound.terms.share { multiple = times } else { multiple = .max }
    }

    /// Counts one in.
    /// - Parameter free: how much of the bound is left, this one included.
    /// - Returns: whether its network may have it.
    package func enter(_ network: ClientNetwork, free: Int) -> Bool {
        let (threshold, overflows) = free.multipliedReportingOverflow(by: multiple)
        return counts.withLock { counts in
            let own = counts[network] ?? 0
            guard overflows || own < threshold else { return false }
            counts[network] = own + 1
            return true
        }
    }

    /// Counts one out that was counted in.
    package func leave(_ network: ClientNetwork) {
        counts.withLock { counts in
            guard let own = counts[network] else { return }
            counts[network] = own > 1 ? own - 1 : nil
        }
    }

    /// How many a network has.
    package func count(of network: ClientNetwork) -> Int { counts.withLock { $0[network] ?? 0 } }
}
