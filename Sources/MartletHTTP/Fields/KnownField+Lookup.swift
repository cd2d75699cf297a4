extension KnownField {
    /// The field that a name stands for once `_` and `.` count as `-`.
    @inline(never)
    static func folded(_ bytes: Span<UInt8>, _ range: ByteRange) -> KnownField {
        guard range.count <= KnownNames.longest else { return .other }
        for field in KnownField.allCases where field.name.utf8CodeUnitCount == range.count {
            var offset = 0
            while offset < range.count, Token.fold(bytes[range.start &+ offset]) == field.name.byte(at: offset) {
                offset &+= 1
            }
            if offset == range.count { return field }
        }
        return .other
    }
}

extension StaticString {
    func byte(at offset: Int) -> UInt8 {
        precondition(offset >= 0 && offset < utf8CodeUnitCount)
        return unsafe utf8Start[offset]
    }
}
