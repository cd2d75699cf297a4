private import Glibc

/// Consistent hashing by the highest random weight: each pair of a key and an endpoint has a score, and the best one is
/// used.
///
/// A change of the endpoints moves only what the changed one has or gets; an endpoint that is out of use gives its keys
/// to all others in proportion to their weights. There is no table to build, and no seed: every instance decides alike.
package enum RendezvousHash {
    /// The hash of a key, such as a subject, or of an endpoint's URL (FNV-1a, then mixed).
    package static func hash(_ bytes: some Sequence<UInt8>) -> UInt64 {
        mix(bytes.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 })
    }

    /// The score of a key at an endpoint; the highest one wins. Comparable only among equal weights.
    package static func score(_ key: UInt64, _ endpoint: UInt64) -> UInt64 { mix(key ^ endpoint) }

    /// The score of a key at an endpoint, where an endpoint of twice the weight wins twice as often; the lowest wins.
    /// Among equal weights it orders like ``score(_:_:)``.
    package static func weightedScore(_ key: UInt64, _ endpoint: UInt64, weight: Int64) -> Double {
        guard weight > 0 else { return .infinity }
        // Between 0 and 1, never 0.
        let uniform = (Double(score(key, endpoint) >> 11) + 0.5) / Double(UInt64(1) << 53)
        return -log(uniform) / Double(weight)
    }

    /// Spreads the bits of a number (the finalizer of MurmurHash3).
    private static func mix(_ value: UInt64) -> UInt64 {
        var mixed = value
        mixed = (mixed ^ (mixed >> 33)) &* 0xFF51_AFD7_ED55_8CCD
        mixed = (mixed ^ (mixed >> 33)) &* 0xC4CE_B9FE_1A85_EC53
        return mixed ^ (mixed >> 33)
    }
}
