/// What an event or a timer belongs to, in the 64 bits that the kernel returns: kind, generation, index.
struct EventToken {
    enum Kind: UInt8 { case mailbox, listener, downstream, upstream }

    let raw: UInt64

    init(raw: UInt64) { self.raw = raw }

    init(_ kind: Kind, index: Int32, generation: UInt32 = 0) {
        raw = UInt64(kind.rawValue) << 56 | UInt64(generation & 0xFF_FFFF) << 32 | UInt64(UInt32(bitPattern: index))
    }

    var kind: Kind? { Kind(rawValue: UInt8(truncatingIfNeeded: raw >> 56)) }
    var generation: UInt32 { UInt32(truncatingIfNeeded: raw >> 32) & 0xFF_FFFF }
    var index: Int32 { Int32(bitPattern: UInt32(truncatingIfNeeded: raw)) }
}
