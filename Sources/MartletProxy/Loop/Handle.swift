/// A slot of a ``Slab`` and the slot's generation, in one word.
///
/// The type of the slab's elements is part of the handle's type, so that a handle cannot be used with another slab.
struct Handle<Element: SlabElement & ~Copyable>: Hashable, Sendable, BitwiseCopyable {
    /// The generation (32 bits) and the index (32 bits): handles are passed and compared as one number.
    let raw: UInt64

    @inline(__always)
    init(raw: UInt64) { self.raw = raw }

    @inline(__always)
    init(index: Int32, generation: UInt32) {
        raw = UInt64(generation) << 32 | UInt64(UInt32(bitPattern: index))
    }

    /// The handle that refers to no element; its index is −1.
    @inline(__always)
    static var none: Handle { Handle(index: -1, generation: 0) }

    /// Whether it refers to no element.
    @inline(__always)
    var isNone: Bool { index < 0 }

    @inline(__always)
    var index: Int32 { Int32(truncatingIfNeeded: raw) }

    @inline(__always)
    var generation: UInt32 { UInt32(truncatingIfNeeded: raw >> 32) }

    /// The index without its sign: that of `none` is greater than any other.
    @inline(__always)
    var offset: Int { Int(UInt32(truncatingIfNeeded: raw)) }
}

/// An element of a slab: it knows whether its slot is allocated, and the slot's generation.
protocol SlabElement: ~Copyable {
    /// A fresh element for a slot; called once per slot, the element is then reused.
    init()
    /// Counts the slot's allocations in 24 bits, so that late events of earlier ones can be recognized.
    var generation: UInt32 { get set }
    var isAlive: Bool { get set }
}
