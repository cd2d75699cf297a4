package import MartletCore
package import MartletHTTP

/// What an upstream gets of one `Cookie` field: the ranges to copy, one after the other, without the gateway's cookies
/// and without those that hold one of its tokens.
///
/// Other cookies stay byte by byte and in order. If there is no range, the whole field is dropped.
package struct ForwardedCookies {
    private let cutsTokens: Bool
    private var pairs: CookiePairs
    private var pending: CookiePair?
    private var isFirst = true

    /// - Parameters:
    ///   - value: of a `Cookie` field.
    ///   - cutsTokens: whether cookies of others that hold a token of the gateway are cut, too: those of a former name.
    package init(_ value: ByteRange, cutsTokens: Bool = false) {
        self.cutsTokens = cutsTokens
        pairs = CookiePairs(value)
    }

    /// Appends what an upstream gets of a field; nothing if there are no other cookies.
    /// - Parameter cookies: those of the gateway; `nil` where it has none.
    package static func append(
        _ field: HeadField, _ bytes: UnsafeBufferPointer<UInt8>, without cookies: GatewayCookies?, cutsTokens: Bool,
        to out: inout ByteBuffer
    ) {
        var kept = ForwardedCookies(field.value, cutsTokens: cutsTokens)
        guard let first = unsafe kept.next(bytes.span, without: cookies) else { return }
        unsafe out.append(bytes[ByteRange(from: field.line.start, to: field.value.start)])
        unsafe out.append(bytes[first])
        while let next = unsafe kept.next(bytes.span, without: cookies) { unsafe out.append(bytes[next]) }
        out.append("\r\n")
    }

    /// The next range of the field in `bytes`; `nil` at its end.
    /// - Parameter cookies: those of the gateway; `nil` where it has none.
    package mutating func next(_ bytes: Span<UInt8>, without cookies: GatewayCookies?) -> ByteRange? {
        guard let first = pending ?? nextKept(bytes, cookies) else { return nil }
        pending = nil
        // The semicolon before it joins it to what was copied already.
        let start = isFirst ? first.name.start : first.element.start &- 1
        isFirst = false
        var last = first
        while let pair = nextKept(bytes, cookies) {
            guard pair.element.start == last.element.end &+ 1 else {
                pending = pair
                break
            }
            last = pair
        }
        return ByteRange(from: start, to: last.hasValue ? last.value.end : last.name.end)
    }

    private mutating func nextKept(_ bytes: Span<UInt8>, _ cookies: GatewayCookies?) -> CookiePair? {
        while let pair = pairs.next(bytes) {
            if pair.isBlank || cookies?.names.kind(of: pair, in: bytes) != nil { continue }
            if !cutsTokens || !holdsToken(pair, bytes) { return pair }
        }
        return nil
    }

    private func holdsToken(_ pair: CookiePair, _ bytes: Span<UInt8>) -> Bool {
        unsafe bytes.withUnsafeBufferPointer { unsafe OwnToken.appears(in: $0[pair.element]) }
    }
}
