extension KnownField {
    /// The field that a name of any length spells in any letter case; `range` holds token characters only.
    @inline(never)
    static func named(_ bytes: Span<UInt8>, _ range: ByteRange) -> KnownField {
        guard range.count <= 16 else { return long(bytes, range) }
        var words = SIMD2<UInt64>()
        for offset in 0..<range.count {
            // No other token character becomes a letter, a digit or a dash by this.
            let folded = UInt64(bytes[range.start &+ offset] | 0x20)
            words[offset >> 3] |= folded &<< UInt64(truncatingIfNeeded: (offset & 7) &* 8)
        }
        return FoldedName(low: words[0], high: words[1], count: range.count).known
    }

    /// The names of 17 and more bytes.
    @inline(never)
    private static func long(_ bytes: Span<UInt8>, _ range: ByteRange) -> KnownField {
        @inline(__always) func spells(_ field: KnownField) -> Bool { bytes.spells(field.name, at: range.start) }
        switch range.count {
        case 17:
            if spells(.transferEncoding) { return .transferEncoding }
            if spells(.xForwardedProto) { return .xForwardedProto }
            return spells(.secWebSocketKey) ? .secWebSocketKey : spells(.originalMethod) ? .originalMethod : .other
        case 18:
            if spells(.xForwardedMethod) { return .xForwardedMethod }
            return spells(.xForwardedPrefix)
                ? .xForwardedPrefix : spells(.proxyAuthenticate) ? .proxyAuthenticate : .other
        case 19: return spells(.proxyAuthorization) ? .proxyAuthorization : .other
        case 20: return spells(.secWebSocketAccept) ? .secWebSocketAccept : .other
        case 21: return spells(.secWebSocketVersion) ? .secWebSocketVersion : .other
        case 22: return spells(.secWebSocketProtocol) ? .secWebSocketProtocol : .other
        case 24: return spells(.secWebSocketExtensions) ? .secWebSocketExtensions : .other
        default: return .other
        }
    }

    /// The field that a name stands for once `_` and `.` count as `-`.
    @inline(never)
    static func folded(_ bytes: Span<UInt8>, _ range: ByteRange) -> KnownField {
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
