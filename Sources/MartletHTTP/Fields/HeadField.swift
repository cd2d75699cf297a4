/// One field line of a head or a trailer section: offsets and properties.
@usableFromInline
package struct HeadField: Sendable {
    @usableFromInline let start: UInt32
    @usableFromInline let nameEnd: UInt32
    @usableFromInline let valueStart: UInt32
    @usableFromInline private(set) var valueEnd: UInt32
    @usableFromInline let end: UInt32
    /// The codes of `known` and `alias`, a byte each, then flags; written with one store.
    @usableFromInline private(set) var tags: UInt32

    private static let obsText: UInt32 = 1 << 16
    @usableFromInline static var unusual: UInt32 { 1 << 17 }
    @usableFromInline static var percent: UInt32 { 1 << 18 }
    @usableFromInline static var withheld: UInt32 { 1 << 19 }
    @usableFromInline static var connectionOption: UInt32 { 1 << 24 }

    /// The name as it was sent.
    @inlinable package var name: ByteRange { ByteRange(ordered: start, nameEnd) }
    /// The value without the white space around it.
    @inlinable package var value: ByteRange { ByteRange(ordered: valueStart, valueEnd) }
    /// From the name through CRLF: what to copy when the field is forwarded unchanged.
    @inlinable package var line: ByteRange { ByteRange(ordered: start, end) }
    /// The field if its name is spelled exactly, letter case aside.
    @inlinable package var known: KnownField { KnownField(code: UInt8(truncatingIfNeeded: tags)) }
    /// The known field with the same letters as an unusual name (`isUnusual`); else `other`.
    @inlinable package var alias: KnownField { KnownField(code: UInt8(truncatingIfNeeded: tags &>> 8)) }
    /// Whether the value holds bytes over 0x7F (RFC 9110 `obs-text`).
    package var hasObsText: Bool { tags & HeadField.obsText != 0 }
    /// Whether the name has other characters than letters, digits and dashes.
    @inlinable package var isUnusual: Bool { tags & HeadField.unusual != 0 }
    /// Whether the field is never forwarded: `Connection` names it, its name contains a `%`, which an upstream could
    /// decode, or it is a credential for the gateway alone.
    @inlinable package var isNeverForwarded: Bool {
        tags & (HeadField.connectionOption | HeadField.percent | HeadField.withheld) != 0
    }
    /// Whether a `Connection` field names it.
    ///
    /// Never set for `Host`, `Content-Length` and `Transfer-Encoding`, nor for `Keep-Alive` and `Upgrade`, which are
    /// hop-by-hop anyway.
    @inlinable package var isConnectionOption: Bool { tags & HeadField.connectionOption != 0 }

    /// A line from its first byte to the end of its CRLF.
    @inline(__always)
    init(from start: Int, nameEnd: Int, valueStart: Int, valueEnd: Int, to end: Int, known: KnownField) {
        self.start = UInt32(truncatingIfNeeded: start)
        self.nameEnd = UInt32(truncatingIfNeeded: nameEnd)
        self.valueStart = UInt32(truncatingIfNeeded: valueStart)
        self.valueEnd = UInt32(truncatingIfNeeded: valueEnd)
        self.end = UInt32(truncatingIfNeeded: end)
        tags = UInt32(known.code)
    }

    /// Sets the flags of an unusual field.
    mutating func set(_ name: UnusualName, hasObsText: Bool) {
        tags |= UInt32(name.alias.code) &<< 8 | (hasObsText ? HeadField.obsText : 0)
        tags |= (name.isUnusual ? HeadField.unusual : 0) | (name.hasPercent ? HeadField.percent : 0)
    }

    mutating func shortenValue(to end: Int) { valueEnd = UInt32(truncatingIfNeeded: end) }

    mutating func withhold() { tags |= HeadField.withheld }

    mutating func markConnectionOption() { tags |= HeadField.connectionOption }

    /// An empty field, as an initial value.
    static var none: HeadField { HeadField(from: 0, nameEnd: 0, valueStart: 0, valueEnd: 0, to: 0, known: .other) }
}

/// The properties of a name with characters other than letters, digits and dashes.
struct UnusualName {
    var isUnusual = false
    var hasPercent = false
    /// The known field that has the same letters.
    var alias = KnownField.other
}
