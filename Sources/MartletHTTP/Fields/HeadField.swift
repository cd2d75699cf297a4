/// One field line of a head or a trailer section: offsets and what is known about it.
@usableFromInline
package struct HeadField: Sendable {
    /// The name as it was sent.
    @usableFromInline package internal(set) var name: ByteRange
    /// The value without the white space around it.
    package internal(set) var value: ByteRange
    /// From the name through CRLF: what to copy when the field is passed on as it is.
    package internal(set) var line: ByteRange
    /// The hash of the folded name (lower case, `_` and `.` as `-`); for `FieldNameSet`.
    @usableFromInline package internal(set) var nameHash: UInt32
    /// The field if its name is spelled exactly, letter case aside.
    package internal(set) var known: KnownField
    /// The field that a spelling with `_` or `.` would become at an upstream that folds names; else `other`.
    package internal(set) var alias: KnownField
    /// Whether the value holds bytes over 0x7F (RFC 9110 `obs-text`).
    package internal(set) var hasObsText: Bool
    /// Whether a `Connection` field names it.
    ///
    /// Never set for `Host`, `Content-Length` and `Transfer-Encoding`, nor for what is
    /// about the connection anyway: `Keep-Alive`, `Upgrade`.
    package var isConnectionOption: Bool

    /// Begins a field: everything about its name, and what it says until something else is found out.
    @inline(__always)
    mutating func setName(_ range: ByteRange, hash: UInt32, known: KnownField, alias: KnownField) {
        name = range
        nameHash = hash
        self.known = known
        self.alias = alias
        hasObsText = false
        isConnectionOption = false
    }

    /// A field of no bytes, for a variable to begin with.
    static var none: HeadField {
        HeadField(
            name: .empty, value: .empty, line: .empty, nameHash: 0, known: .other, alias: .other, hasObsText: false,
            isConnectionOption: false)
    }
}
