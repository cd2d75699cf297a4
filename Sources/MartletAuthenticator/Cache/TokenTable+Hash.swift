internal import MartletCore

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
        let first = unsafe KeyedHash.fold(state ^ Self.word(end, -64), Self.word(end, -56) ^ key.1)
        let second = unsafe KeyedHash.fold(first ^ Self.word(end, -48), Self.word(end, -40) ^ key.1)
        let third = unsafe KeyedHash.fold(second ^ Self.word(end, -32), Self.word(end, -24) ^ key.1)
        let fourth = unsafe KeyedHash.fold(third ^ Self.word(end, -16), Self.word(end, -8) ^ key.1)
        return KeyedHash.fold(fourth, KeyedHash.last ^ key.1)
    }

    /// The same for tokens shorter than 64 bytes.
    @inline(never)
    static func hashShort(_ token: UnsafeBufferPointer<UInt8>, _ start: UInt64, _ key: UInt64) -> UInt64 {
        var state = start
        for index in 0..<token.count {
            state = KeyedHash.fold(state ^ UInt64(unsafe token[index]), 0x9E37_79B9_7F4A_7C15 ^ key)
        }
        return KeyedHash.fold(state, KeyedHash.last ^ key)
    }

    @inline(__always)
    static func word(_ end: UnsafeRawPointer, _ offset: Int) -> UInt64 {
        unsafe end.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
    }
}
