/// A hash of a field name's letters, eight bytes at a time, zero-padded.
///
/// Not collision-resistant: callers compare the names too.
struct NameHash {
    private var state: UInt64 = 0x9E37_79B9_7F4A_7C15

    init() {}

    /// Adds the next eight bytes, the first one lowest.
    @inline(__always)
    mutating func mix(_ word: UInt64) {
        let product = (state ^ word) &* 0xD6E8_FEB8_6659_FD93
        state = product ^ (product >> 32)
    }

    /// The hash.
    var value: UInt32 { UInt32(truncatingIfNeeded: state) }
}
