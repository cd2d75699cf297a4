/// The hash of what a limit counts by.
///
/// The hash is keyed by a seed of the process, so that clients cannot look for keys that share a bucket.
package struct RateKey: Sendable, Hashable {
    /// Never 0.
    let word: Int64

    fileprivate init(word: Int64) { self.word = word == 0 ? 1 : word }

    /// The first of the two groups where its bucket may be.
    @inline(__always)
    func firstGroup(of count: UInt64) -> UInt64 { UInt64(bitPattern: word).multipliedFullWidth(by: count).high }

    @inline(__always)
    func secondGroup(of count: UInt64) -> UInt64 {
        let mixed = (UInt64(bitPattern: word) &* 0x9E37_79B9_7F4A_7C15) ^ UInt64(bitPattern: word) &>> 29
        return (mixed &* 0xD6E8_FEB8_6659_FD93).multipliedFullWidth(by: count).high
    }

    /// The hash of one text, for the parts of a key that do not change from request to request.
    package static func hash(_ text: String) -> Int {
        var text = text
        return text.withUTF8 { bytes in
            var builder = RateKeyBuilder()
            unsafe builder.add(bytes)
            return Int(truncatingIfNeeded: builder.key().word)
        }
    }
}

/// Builds a key from its parts, in order.
package struct RateKeyBuilder {
    private static let longestHost = 256

    // Keyed by the standard library with a random seed for each process.
    private var hasher = Hasher()

    package init() {}

    /// Adds a part that the request does not have: all such requests share a bucket.
    @inline(__always)
    package mutating func addMissing() { hasher.combine(-1) }

    /// Adds a hash.
    @inline(__always)
    package mutating func add(hash: Int) {
        hasher.combine(8)
        hasher.combine(hash)
    }

    /// Adds the bytes of a part.
    package mutating func add(_ bytes: UnsafeBufferPointer<UInt8>) {
        // The count first, so that parts cannot be shifted into each other.
        hasher.combine(bytes.count)
        unsafe hasher.combine(bytes: UnsafeRawBufferPointer(bytes))
    }

    /// Adds a client's address: 16 bytes in network order, of which a /64 counts unless they are an IPv4 address.
    /// Anything else is missing.
    package mutating func add(address bytes: UnsafeBufferPointer<UInt8>) {
        guard bytes.count == 16, unsafe bytes.contains(where: { $0 != 0 }) else { return addMissing() }
        let isMapped = unsafe bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 0xFF && bytes[11] == 0xFF
        let part = isMapped ? 12..<16 : 0..<8
        unsafe add(UnsafeBufferPointer(rebasing: bytes[part]))
    }

    /// Adds a host: its name in lower case, without a port and a final dot.
    package mutating func add(host bytes: UnsafeBufferPointer<UInt8>) {
        var end = bytes.count
        if let colon = unsafe bytes.lastIndex(of: UInt8(ascii: ":")),
            unsafe bytes[colon...].dropFirst().allSatisfy({ $0 >= 0x30 && $0 <= 0x39 })
        {
            end = colon
        }
        if end > 0, unsafe bytes[end - 1] == UInt8(ascii: ".") { end -= 1 }
        guard end > 0 else { return addMissing() }
        end = min(end, Self.longestHost)
        hasher.combine(end)
        for index in 0..<end {
            let byte = unsafe bytes[index]
            hasher.combine(byte &- 0x41 < 26 ? byte | 0x20 : byte)
        }
    }

    /// The key of all parts.
    @inline(__always)
    package func key() -> RateKey { RateKey(word: Int64(hasher.finalize())) }
}
