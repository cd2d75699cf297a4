/// A field name of one to sixteen letters, digits and dashes, in lower case: two words, zeros behind the last byte.
struct FoldedName {
    let low: UInt64
    let high: UInt64
    let count: Int

    @inline(__always)
    init(low: UInt64, high: UInt64, count: Int) {
        self.low = low
        self.high = high
        self.count = count
    }

    /// The first `count` bytes of `block`, 1–15; they are letters, digits and dashes.
    @inline(__always)
    init(_ block: SIMD16<Int8>, count: Int) {
        // Setting the bit changes neither digits nor the dash.
        let words = unsafe unsafeBitCast(block | ASCII.caseBit, to: SIMD2<UInt64>.self)
        let unused = UInt64(truncatingIfNeeded: 16 &- count) &* 8
        let isShort = count <= 8
        low = isShort ? words[0] & (UInt64.max &>> (unused &- 64)) : words[0]
        high = isShort ? 0 : words[1] & (UInt64.max &>> unused)
        self.count = count
    }

    /// As `NameHash.of` has it.
    @inline(__always)
    var hash: UInt32 {
        var hash = NameHash()
        hash.mix(low)
        if count > 8 { hash.mix(high) }
        return hash.value
    }

    @inline(__always)
    private func spells(_ field: KnownField) -> Bool {
        low == field.name.paddedWord(at: 0) && (count <= 8 || high == field.name.paddedWord(at: 8))
    }

    /// The field that the name spells.
    ///
    /// By length first: few names share one, and each comparison is a word or two.
    @inline(__always)
    var known: KnownField {
        switch count {
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
        case 16:
            if spells(.xForwardedHost) { return .xForwardedHost }
            if spells(.xForwardedPort) { return .xForwardedPort }
            if spells(.contentEncoding) { return .contentEncoding }
            return spells(.wwwAuthenticate) ? .wwwAuthenticate : spells(.proxyConnection) ? .proxyConnection : .other
        default: return .other
        }
    }
}
