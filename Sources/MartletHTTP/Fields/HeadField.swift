/// One field line of a head or a trailer section: offsets and what is known about it.
@usableFromInline
package struct HeadField: Sendable {
    /// The name as it was sent.
    @usableFromInline package let name: ByteRange
    /// The value without the white space around it.
    package let value: ByteRange
    /// From the name through CRLF: what to copy when the field is passed on as it is.
    package let line: ByteRange
    /// The hash of the folded name (lower case, `_` and `.` as `-`); for `FieldNameSet`.
    @usableFromInline package let nameHash: UInt32
    /// The field if its name is spelled exactly, letter case aside.
    package let known: KnownField
    /// The field that a spelling with `_` or `.` would become at an upstream that folds names; else `other`.
    package let alias: KnownField
    /// Whether the value holds bytes over 0x7F (RFC 9110 `obs-text`).
    package let hasObsText: Bool
    /// Whether a `Connection` field names it.
    ///
    /// Never set for `Host`, `Content-Length` and `Transfer-Encoding`, nor for what is
    /// about the connection anyway: `Keep-Alive`, `Upgrade`.
    package var isConnectionOption: Bool

    /// A field of no bytes, for a variable to begin with.
    static var none: HeadField {
        HeadField(
            name: .empty, value: .empty, line: .empty, nameHash: 0, known: .other, alias: .other, hasObsText: false,
            isConnectionOption: false)
    }
}
