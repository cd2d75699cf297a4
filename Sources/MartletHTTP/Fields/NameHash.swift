/// The hash of a folded field name: eight bytes at a time, the last word filled up with zeros.
///
/// It only narrows a search down; whoever uses it compares the names as well.
struct NameHash {
    private var state: UInt64 = 0x9E37_79B9_7F4A_7C15

    init() {}

    /// Takes in the next eight bytes of the folded name, the first one lowest.
    @inline(__always)
    mutating func mix(_ word: UInt64) {
        let product = (state ^ word) &* 0xD6E8_FEB8_6659_FD93
        state = product ^ (product >> 32)
    }

    /// The hash of all that was mixed in.
    var value: UInt32 { UInt32(truncatingIfNeeded: state) }

    /// The hash of a name, in whatever spelling.
    static func of(_ name: Span<UInt8>) -> UInt32 {
        var hash = NameHash()
        var word: UInt64 = 0
        for index in 0..<name.count {
            let shift = UInt64(truncatingIfNeeded: index & 7) &* 8
            word |= UInt64(Token.fold(name[index])) &<< shift
            if index & 7 == 7 {
                hash.mix(word)
                word = 0
            }
        }
        if name.count & 7 != 0 { hash.mix(word) }
        return hash.value
    }
}
