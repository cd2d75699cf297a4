private import Glibc

extension String {
    /// Whether both texts are the same bytes.
    ///
    /// `==` compares by Unicode equivalence: a Kelvin sign equals `K` there. What decides on access is compared by this.
    // Most texts that differ do so in length, and short ones are told apart in registers: both is asked where this is called.
    // Of what is not even equivalent the bytes are not the same; what is long has no equivalence looked up.
    @inlinable
    public func hasSameBytes(as other: String) -> Bool {
        let count = utf8.count
        guard count == other.utf8.count, count > 15 || self == other else { return false }
        return hasSameBytes(ofSameCount: other)
    }

    @usableFromInline
    func hasSameBytes(ofSameCount other: String) -> Bool {
        let isSame = unsafe utf8.withContiguousStorageIfAvailable { left in
            unsafe other.utf8.withContiguousStorageIfAvailable { right in
                guard let first = left.baseAddress, let second = right.baseAddress else {
                    return left.count == right.count
                }
                return unsafe left.count == right.count && memcmp(first, second, left.count) == 0
            }
        }
        return isSame.flatMap { $0 } ?? utf8.elementsEqual(other.utf8)
    }
}
