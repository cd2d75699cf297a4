/// The request method.
///
/// Methods are case-sensitive (RFC 9110 §9.1): `get` is `other`.
@usableFromInline package enum Method: UInt8, Sendable, CaseIterable {
    case get, head, post, put, delete, patch, options, trace, connect, other

    /// The method's name; empty for `other`.
    package var name: StaticString {
        switch self {
        case .get: "GET"
        case .head: "HEAD"
        case .post: "POST"
        case .put: "PUT"
        case .delete: "DELETE"
        case .patch: "PATCH"
        case .options: "OPTIONS"
        case .trace: "TRACE"
        case .connect: "CONNECT"
        case .other: ""
        }
    }

    /// RFC 9110 §9.2.2.
    package var isIdempotent: Bool {
        switch self {
        case .get, .head, .put, .delete, .options, .trace: true
        case .post, .patch, .connect, .other: false
        }
    }

    /// Whether it is not one that routes usually have: never forwarded, unknown, or OPTIONS, which browsers send on
    /// their own.
    @inlinable package var isUncommon: Bool {
        switch self {
        case .get, .head, .post, .put, .delete, .patch: false
        case .options, .trace, .connect, .other: true
        }
    }

    /// The method at `start` and its length, if it is a common one followed by a space.
    @inline(__always)
    static func common(_ bytes: Span<UInt8>, at start: Int) -> (method: Method, count: Int)? {
        guard bytes.hasBlock(at: start) else { return nil }
        let word = bytes.word(at: start)
        @inline(__always) func begins(_ method: Method) -> Bool {
            let unused = UInt64(truncatingIfNeeded: 7 &- method.name.utf8CodeUnitCount) &* 8
            let space = (0x2000_0000_0000_0000 as UInt64) &>> unused
            return word & (UInt64.max &>> unused) == method.name.paddedWord(at: 0) | space
        }
        if begins(.get) { return (.get, 3) }
        if begins(.post) { return (.post, 4) }
        if begins(.put) { return (.put, 3) }
        if begins(.delete) { return (.delete, 6) }
        return begins(.head) ? (.head, 4) : nil
    }

    /// The method that a range of token characters spells.
    static func named(_ bytes: Span<UInt8>, _ range: ByteRange) -> Method {
        func spells(_ method: Method) -> Bool {
            var offset = 0
            while offset < range.count, bytes[range.start &+ offset] == method.name.byte(at: offset) { offset &+= 1 }
            return offset == range.count
        }
        switch range.count {
        case 3: return spells(.get) ? .get : spells(.put) ? .put : .other
        case 4: return spells(.post) ? .post : spells(.head) ? .head : .other
        case 5: return spells(.patch) ? .patch : spells(.trace) ? .trace : .other
        case 6: return spells(.delete) ? .delete : .other
        case 7: return spells(.options) ? .options : spells(.connect) ? .connect : .other
        default: return .other
        }
    }
}
