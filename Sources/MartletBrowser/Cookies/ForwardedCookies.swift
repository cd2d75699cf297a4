package import MartletHTTP

/// What an upstream gets of one `Cookie` field: the ranges to copy, one after the other, without the gateway's cookies.
///
/// Other cookies stay byte by byte and in order. If there is no range, the whole field is dropped.
package struct ForwardedCookies {
    private let names: GatewayCookieNames
    private var pairs: CookiePairs
    private var pending: CookiePair?
    private var isFirst = true

    /// - Parameter value: of a `Cookie` field in a head in which ``GatewayCookies/find(in:_:)`` found cookies.
    package init(_ value: ByteRange, without cookies: GatewayCookies) {
        names = cookies.names
        pairs = CookiePairs(value)
    }

    /// The next range of the field in `bytes`; `nil` at its end.
    package mutating func next(_ bytes: Span<UInt8>) -> ByteRange? {
        guard let first = pending ?? nextKept(bytes) else { return nil }
        pending = nil
        // The semicolon before it joins it to what was copied already.
        let start = isFirst ? first.name.start : first.element.start &- 1
        isFirst = false
        var last = first
        while let pair = nextKept(bytes) {
            guard pair.element.start == last.element.end &+ 1 else {
                pending = pair
                break
            }
            last = pair
        }
        return ByteRange(from: start, to: last.hasValue ? last.value.end : last.name.end)
    }

    private mutating func nextKept(_ bytes: Span<UInt8>) -> CookiePair? {
        while let pair = pairs.next(bytes) {
            if !pair.isBlank, names.kind(of: pair, in: bytes) == nil { return pair }
        }
        return nil
    }
}
