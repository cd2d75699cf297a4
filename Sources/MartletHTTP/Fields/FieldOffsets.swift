/// The offsets of a field line in a head that was written as text: `name`, a colon and a space, the value, CRLF.
@usableFromInline package struct FieldOffsets: Sendable {
    @usableFromInline let start: UInt32
    @usableFromInline let nameEnd: UInt32
    @usableFromInline let valueEnd: UInt32
    @usableFromInline let hasObsText: Bool

    /// - Parameters:
    ///   - start: where the line begins, counted from the beginning of the head.
    ///   - nameCount: bytes of its name.
    ///   - valueCount: bytes of its value, which has no white space at either end.
    ///   - hasObsText: whether the value may have bytes over 0x7F.
    @inlinable package init(start: Int, nameCount: Int, valueCount: Int, hasObsText: Bool) {
        self.start = UInt32(truncatingIfNeeded: start)
        nameEnd = UInt32(truncatingIfNeeded: start &+ nameCount)
        valueEnd = UInt32(truncatingIfNeeded: start &+ nameCount &+ 2 &+ valueCount)
        self.hasObsText = hasObsText
    }
}
