package import MartletHTTP

extension GatewayCookies {
    /// Whether a `Set-Cookie` field of an upstream would set or delete one of the gateway's cookies.
    ///
    /// Letter case is ignored: browsers enforce the rules of `__Host-` in any case, and no upstream needs a name that
    /// differs in it alone. A cookie without a name is sent as its value, which may look like a name and a value
    /// (RFC 6265bis §5.7).
    package func areSet(by value: ByteRange, in bytes: Span<UInt8>) -> Bool {
        var pairs = CookiePairs(value)
        guard let first = pairs.next(bytes) else { return false }
        guard first.name.isEmpty, first.hasValue else { return isName(first.name, in: bytes) }
        var nameless = CookiePairs(first.value)
        return nameless.next(bytes).map { isName($0.name, in: bytes) } ?? false
    }

    private func isName(_ range: ByteRange, in bytes: Span<UInt8>) -> Bool {
        let name = bytes.extracting(range.bounds)
        if name.spellsIgnoringCase(session.name) || name.spellsIgnoringCase(form.name) { return true }
        let length = start.name.utf8.count
        return name.count >= length && name.extracting(0..<length).spellsIgnoringCase(start.name)
            && (name.count == length || name[length] == UInt8(ascii: "-"))
    }
}
