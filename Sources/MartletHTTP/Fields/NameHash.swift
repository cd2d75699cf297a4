/// The hash of a field name's letters: eight bytes at a time, the last word filled up with zeros.
///
/// It only narrows a search down; whoever uses it compares the names as well.
struct NameHash {
    private var state: UInt64 = 0x9E37_79B9_7F4A_7C15

    init() {}

    /// Takes in the next eight bytes of them, the first one lowest.
    @inline(__always)
    mutating func mix(_ word: UInt64) {
        let product = (state ^ word) &* 0xD6E8_FEB8_6659_FD93
        state = product ^ (product >> 32)
    }

    /// The hash of all that was mixed in.
    var value: UInt32 { UInt32(truncatingIfNeeded: state) }
}
