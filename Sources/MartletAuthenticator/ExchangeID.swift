/// What the loop calls an exchange: opaque here.
@usableFromInline
package struct ExchangeID: Hashable, Sendable, BitwiseCopyable {
    @usableFromInline package let raw: UInt64

    @inlinable @inline(__always)
    package init(raw: UInt64) { self.raw = raw }
}
