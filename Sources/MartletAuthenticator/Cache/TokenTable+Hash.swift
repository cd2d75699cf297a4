/// The keyed hash of a token.
extension TokenTable {
    /// A keyed 64-bit hash of a token's length and its last 64 bytes: the signature, where tokens differ.
    ///
    /// Good enough for a table that compares every byte afterwards; not for secrets.
    @inline(__always)
    func hash(_ token: UnsafeBufferPointer<UInt8>, _ scope: UInt32) -> UInt64 {
        let state = key.0 ^ UInt64(scope) &* 0x9E37_79B9_7F4A_7C15 ^ UInt64(truncatingIfNeeded: token.count)
        guard let base = token.baseAddress, token.count >= 64 else {
            return unsafe Self.hashShort(token, state, key.1)
        }
        let end = unsafe UnsafeRawPointer(base + token.count)
        let first = unsafe Self.fold(state ^ Self.word(end, -64), Self.word(end, -56) ^ key.1)
        let second = unsafe Self.fold(first ^ Self.word(end, -48), Self.word(end, -40) ^ key.1)
        let third = unsafe Self.fold(second ^ Self.word(end, -32), Self.word(end, -24) ^ key.1)
        let fourth = unsafe Self.fold(third ^ Self.word(end, -16), Self.word(end, -8) ^ key.1)
        return Self.fold(fourth, 0xE703_7ED1_A0B4_28DB ^ key.1)
    }

    /// The same for tokens shorter than 64 bytes.
    @inline(never)
    static func hashShort(_ token: UnsafeBufferPointer<UInt8>, _ start: UInt64, _ key: UInt64) -> UInt64 {
        var state = start
        for index in 0..<token.count {
            state = fold(state ^ UInt64(unsafe token[index]), 0x9E37_79B9_7F4A_7C15 ^ key)
        }
        return fold(state, 0xE703_7ED1_A0B4_28DB ^ key)
    }

    @inline(__always)
    static func word(_ end: UnsafeRawPointer, _ offset: Int) -> UInt64 {
        unsafe end.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
    }

    @inline(__always)
    static func fold(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.high ^ product.low
    }
}
