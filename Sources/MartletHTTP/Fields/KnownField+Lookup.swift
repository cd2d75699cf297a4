extension KnownField {
    /// The field with this name, case-insensitively.
    @inline(never)
    static func named(_ bytes: Span<UInt8>, _ range: ByteRange) -> KnownField {
        guard range.count <= KnownNames.longest else { return .other }
        for field in KnownField.allCases where field.name.utf8CodeUnitCount == range.count {
            var offset = 0
            while offset < range.count, ASCII.lowered(bytes[range.start &+ offset]) == field.name.byte(at: offset) {
                offset &+= 1
            }
            if offset == range.count { return field }
        }
        return .other
    }

    /// The field with the same letters and digits as a name (`FieldLetters`).
    @inline(never)
    package static func lookAlike(_ bytes: Span<UInt8>, _ range: ByteRange) -> KnownField {
        for field in KnownField.allCases where field.name.utf8CodeUnitCount > 0 {
            var index = range.start
            var offset = 0
            while index < range.end {
                let letter = FieldLetters.of(bytes[index])
                index &+= 1
                if letter == 0 { continue }
                while offset < field.name.utf8CodeUnitCount, field.name.byte(at: offset) == UInt8(ascii: "-") {
                    offset &+= 1
                }
                guard offset < field.name.utf8CodeUnitCount, field.name.byte(at: offset) == letter else {
                    offset = -1
                    break
                }
                offset &+= 1
            }
            if offset == field.name.utf8CodeUnitCount { return field }
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
