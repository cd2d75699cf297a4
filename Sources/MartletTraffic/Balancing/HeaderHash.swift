/// The hash of all values of a header, by which requests are balanced (FNV-1a).
package struct HeaderHash {
    private static let ofNothing: UInt64 = 0xCBF2_9CE4_8422_2325

    private var state = HeaderHash.ofNothing

    package init() {}

    /// Adds the next value.
    package mutating func add(_ bytes: Span<UInt8>) {
        for index in bytes.indices { state = (state ^ UInt64(bytes[index])) &* 0x100_0000_01B3 }
    }

    /// The hash; 0 without the header, or where it is empty.
    package var value: UInt64 { state == HeaderHash.ofNothing ? 0 : state }
}
