/// The trace context of a request, as W3C Trace Context (level 1) defines it: which trace it belongs to, and which span
/// of its sender is its parent.
@frozen package struct TraceContext: Hashable, Sendable, BitwiseCopyable {
    package let trace: TraceID
    package let parent: SpanID
    package let isSampled: Bool

    package init(trace: TraceID, parent: SpanID, isSampled: Bool) {
        (self.trace, self.parent, self.isSampled) = (trace, parent, isSampled)
    }

    /// The length of a value of version 00.
    package static let length = 55

    /// Reads the value of `traceparent` (§3.2).
    ///
    /// Of a later version, the part that version 00 has is read, as long as it ends there or a dash follows.
    /// - Returns: `nil` for a value that has to be ignored.
    package init?(traceparent value: Span<UInt8>) {
        guard value.count >= Self.length, let version = Hexadecimal.number(value, from: 0, count: 2), version != 0xFF,
            version == 0
                ? value.count == Self.length : value.count == Self.length || value[Self.length] == Self.dash
        else { return nil }
        guard value[2] == Self.dash, value[35] == Self.dash, value[52] == Self.dash,
            let high = Hexadecimal.number(value, from: 3, count: 16),
            let low = Hexadecimal.number(value, from: 19, count: 16),
            let parent = Hexadecimal.number(value, from: 36, count: 16),
            let flags = Hexadecimal.number(value, from: 53, count: 2)
        else { return nil }
        trace = TraceID(high: high, low: low)
        self.parent = SpanID(parent)
        isSampled = flags & 1 == 1
        guard trace.isValid, self.parent.isValid else { return nil }
    }

    private static var dash: UInt8 { 0x2D }

    /// The same, of the value's bytes.
    package init?(traceparent value: [UInt8]) { self.init(traceparent: value.span) }

    /// As the value of `traceparent`, version 00.
    package var text: String { "00-\(trace.text)-\(parent.text)-\(isSampled ? "01" : "00")" }
}

/// `tracestate` (§3.3): what the systems that a trace passes through have to say about it.
package enum TraceState {
    private static let maximumMembers = 32
    /// Longer lists may be dropped (§3.3.1.5).
    package static let maximumBytes = 512

    /// Joins the values of a request's `tracestate` fields to one.
    /// - Returns: empty for a list that is invalid, or too long.
    package static func joined(_ values: [[UInt8]]) -> [UInt8] {
        let members = values.flatMap { $0.split(separator: 0x2C, omittingEmptySubsequences: false) }.map(trimmed)
            .filter { !$0.isEmpty }
        var keys: Set<ArraySlice<UInt8>> = []
        for member in members {
            guard let sign = member.firstIndex(of: 0x3D), isKey(member[..<sign]), isValue(member[(sign + 1)...]),
                keys.insert(member[..<sign]).inserted
            else { return [] }
        }
        let list = Array(members.joined(separator: [0x2C]))
        return members.count <= maximumMembers && list.count <= maximumBytes ? list : []
    }

    private static func trimmed(_ member: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var member = member.drop { $0 == 0x20 || $0 == 0x09 }
        while member.last == 0x20 || member.last == 0x09 { member.removeLast() }
        return member
    }

    /// A name, or a tenant and a system with `@` between them.
    private static func isKey(_ key: ArraySlice<UInt8>) -> Bool {
        let parts = key.split(separator: 0x40, omittingEmptySubsequences: false)
        switch parts.count {
        case 1: return isName(parts[0], longest: 256, mayBeginWithDigit: false)
        case 2:
            return isName(parts[0], longest: 241, mayBeginWithDigit: true)
                && isName(parts[1], longest: 14, mayBeginWithDigit: false)
        default: return false
        }
    }

    private static func isName(_ name: ArraySlice<UInt8>, longest: Int, mayBeginWithDigit: Bool) -> Bool {
        guard let first = name.first, name.count <= longest,
            isLetter(first) || mayBeginWithDigit && isDigit(first)
        else { return false }
        return name.allSatisfy { isLetter($0) || isDigit($0) || [0x5F, 0x2D, 0x2A, 0x2F].contains($0) }
    }

    private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte) }
    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

    /// Printable ASCII without comma and equals sign, which does not end with a space.
    private static func isValue(_ value: ArraySlice<UInt8>) -> Bool {
        (1...256).contains(value.count) && value.last != 0x20
            && value.allSatisfy { (0x20...0x7E).contains($0) && $0 != 0x2C && $0 != 0x3D }
    }
}
