extension KnownField {
    /// The field that a name spells in any letter case; `range` holds token characters only.
    ///
    /// By length first: few names share one, and each comparison is a word or two.
    @inline(never)
    static func named(_ bytes: Span<UInt8>, _ range: ByteRange) -> KnownField {
        @inline(__always) func spells(_ field: KnownField) -> Bool { bytes.spells(field.name, at: range.start) }
        switch range.count {
        case 2: return spells(.te) ? .te : .other
        case 3: return spells(.via) ? .via : .other
        case 4: return spells(.host) ? .host : spells(.date) ? .date : .other
        case 6: return spells(.cookie) ? .cookie : spells(.expect) ? .expect : spells(.server) ? .server : .other
        case 7: return spells(.upgrade) ? .upgrade : spells(.trailer) ? .trailer : .other
        case 8: return spells(.location) ? .location : .other
        case 9: return spells(.forwarded) ? .forwarded : spells(.xRealIP) ? .xRealIP : .other
        case 10:
            if spells(.connection) { return .connection }
            if spells(.keepAlive) { return .keepAlive }
            return spells(.setCookie) ? .setCookie : spells(.tracestate) ? .tracestate : .other
        case 11: return spells(.traceparent) ? .traceparent : spells(.retryAfter) ? .retryAfter : .other
        case 12:
            if spells(.contentType) { return .contentType }
            return spells(.xRequestID) ? .xRequestID : spells(.maxForwards) ? .maxForwards : .other
        case 13: return spells(.authorization) ? .authorization : spells(.cacheControl) ? .cacheControl : .other
        case 14: return spells(.contentLength) ? .contentLength : spells(.originalURI) ? .originalURI : .other
        case 15:
            if spells(.xForwardedFor) { return .xForwardedFor }
            return spells(.xForwardedURI) ? .xForwardedURI : spells(.originalHost) ? .originalHost : .other
        default: return long(bytes, range)
        }
    }

    /// The names of 16 and more bytes.
    @inline(never)
    private static func long(_ bytes: Span<UInt8>, _ range: ByteRange) -> KnownField {
        @inline(__always) func spells(_ field: KnownField) -> Bool { bytes.spells(field.name, at: range.start) }
        switch range.count {
        case 16:
            if spells(.xForwardedHost) { return .xForwardedHost }
            if spells(.xForwardedPort) { return .xForwardedPort }
            if spells(.contentEncoding) { return .contentEncoding }
            return spells(.wwwAuthenticate) ? .wwwAuthenticate : spells(.proxyConnection) ? .proxyConnection : .other
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
