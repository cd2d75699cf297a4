/// How often a field stands in a head that may have it once.
package enum FieldOccurrence: Sendable, Equatable {
    case absent
    /// The value of the only one.
    case once(ByteRange)
    case repeated
}

extension HeadField {
    /// Whether the name is `text` in any letter case.
    /// - Parameter text: in lower case, 2 to 24 letters, digits and dashes.
    @inlinable @inline(__always)
    package func isNamed(_ text: StaticString, in bytes: Span<UInt8>) -> Bool {
        name.count == text.utf8CodeUnitCount && spells(text, in: bytes)
    }

    /// The same for a name of that length.
    @usableFromInline
    func spells(_ text: StaticString, in bytes: Span<UInt8>) -> Bool { bytes.spells(text, at: name.start) }
}

extension FieldList {
    /// How often the head in `bytes` has a field.
    /// - Parameter name: in lower case, 2 to 24 letters, digits and dashes.
    package func occurrence(of name: StaticString, in bytes: Span<UInt8>) -> FieldOccurrence {
        var found = FieldOccurrence.absent
        var index = 0
        while index < count {
            let field = self[index]
            index &+= 1
            guard field.isNamed(name, in: bytes) else { continue }
            guard found == .absent else { return .repeated }
            found = .once(field.value)
        }
        return found
    }
}
