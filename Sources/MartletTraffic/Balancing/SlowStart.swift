/// How the share of an endpoint grows that has become healthy or was added.
package enum SlowStart {
    /// What a weight of 1 is scaled by, so that a growing share is a whole number.
    package static let scale: Int64 = 1000

    /// The scaled weight of an endpoint at an instant.
    ///
    /// It grows evenly from a tenth of the whole: an endpoint without any request would never warm up.
    /// - Parameters:
    ///   - start: when it began to be used; `nil` has its whole weight.
    ///   - span: how long its share grows, in nanoseconds; 0 is not at all.
    package static func weight(_ weight: Int, since start: Int64?, span: Int64, at now: Int64) -> Int64 {
        let whole = Int64(weight) &* scale
        guard span > 0, let start, now &- start < span else { return whole }
        // In milliseconds the product stays below 2^63 for the longest span and weight.
        let passed = max(now &- start, 0) / 1_000_000
        return max(whole &* passed / max(span / 1_000_000, 1), whole / 10, weight > 0 ? 1 : 0)
    }
}
