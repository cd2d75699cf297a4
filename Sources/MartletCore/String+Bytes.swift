private import Glibc

extension String {
    /// Whether both strings have the same UTF-8 bytes.
    ///
    /// `==` compares by Unicode canonical equivalence: a Kelvin sign equals `K`. Use this for access decisions.
    // The inlined checks: most different strings differ in length, and short ones are compared in registers. Strings
    // that are not equivalent do not have the same bytes; long strings are not compared for equivalence.
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
