internal import MartletRouter

/// The reasons of cached denials, by the numbers under which decisions refer to them.
struct DenialIndex {
    private var denials: [PolicyDenial] = []

    subscript(index: Int32) -> PolicyDenial { denials[Int(index)] }

    /// The number of a reason, assigned on first use.
    mutating func index(of denial: PolicyDenial) -> Int32 {
        if let known = denials.firstIndex(of: denial) { return Int32(known) }
        denials.append(denial)
        return Int32(denials.count - 1)
    }

    mutating func removeAll() { denials.removeAll() }
}
