package import MartletCore
internal import MartletProvider
package import MartletTraffic

/// Counts what is under way at a time, over all event loops, and has networks of clients leave some of it to others.
///
/// A reference without a reference count: what it refers to lives as long as the process.
@safe package struct DividedCounter: Sendable, Equatable {
    package let count: Unmanaged<ConcurrencyCounter>
    package let shares: Unmanaged<NetworkShares>

    package init(_ bound: SharedBound) {
        unsafe count = .passRetained(ConcurrencyCounter())
        unsafe shares = .passRetained(NetworkShares(bound))
    }

    package static func == (left: DividedCounter, right: DividedCounter) -> Bool {
        unsafe left.count.toOpaque() == right.count.toOpaque()
    }

    /// How much is under way.
    package var current: Int { unsafe count._withUnsafeGuaranteedRef { $0.current } }

    /// Whether the next one is one of those that networks divide.
    package func isDivided(of maximum: Int) -> Bool {
        maximum >= NetworkShares.smallestDivided && current >= maximum / 2
    }
}
