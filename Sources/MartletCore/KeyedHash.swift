/// The step of the keyed hashes of tables that clients fill.
///
/// Good enough where a secret key keeps clients from looking for collisions that they cannot see; not for secrets.
@frozen @usableFromInline package enum KeyedHash {
    /// The last step of every hash, so that all bits of its state count for each bit of the result.
    @inlinable package static var last: UInt64 { 0xE703_7ED1_A0B4_28DB }

    /// Mixes a word into a state.
    @inlinable @inline(__always)
    package static func fold(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.high ^ product.low
    }
}
