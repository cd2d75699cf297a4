/// A parsed `Authorization` value (RFC 9110 §11.4, RFC 6750 §2.1): offsets, nothing is decoded.
package enum AuthorizationValue: Sendable, Equatable {
    /// `Bearer` and the token.
    case bearer(ByteRange)
    /// `Basic` and the encoded pair.
    case basic(ByteRange)
    /// `DPoP` and the token (RFC 9449 §7.1).
    case dpop(ByteRange)
    /// Another scheme.
    case other
    /// No scheme, or one of the three without exactly one well-formed credential.
    case malformed

    /// Reads the value at `range`: a scheme in any letter case, one or more spaces, `token68`.
    package init(_ bytes: Span<UInt8>, _ range: ByteRange) {
        var index = range.start
        while index < range.end, Token.isMember(bytes[index]) { index &+= 1 }
        let scheme = ByteRange(from: range.start, to: index)
        let isBearer = bytes.spells("bearer", scheme)
        let isDPoP = !isBearer && bytes.spells("dpop", scheme)
        guard isBearer || isDPoP || bytes.spells("basic", scheme) else {
            let isScheme = !scheme.isEmpty && (index == range.end || bytes[index] == 0x20)
            self = isScheme ? .other : .malformed
            return
        }
        while index < range.end, bytes[index] == 0x20 { index &+= 1 }
        let credential = ByteRange(from: index, to: range.end)
        guard index > scheme.end, AuthorizationValue.isToken68(bytes, credential) else {
            self = .malformed
            return
        }
        self = isBearer ? .bearer(credential) : isDPoP ? .dpop(credential) : .basic(credential)
    }

    /// RFC 9110 §11.2: at least one character of the alphabet, then `=` only.
    private static func isToken68(_ bytes: Span<UInt8>, _ range: ByteRange) -> Bool {
        // The byte after a value ends the scan, so the last bytes need no loop of their own.
        var index = min(bytes.endOfToken68(from: range.start), range.end)
        guard index > range.start else { return false }
        while index < range.end, bytes[index] == UInt8(ascii: "=") { index &+= 1 }
        return index == range.end
    }
}

/// The range of the token in a value that begins with `Bearer` and a space; the token itself is not validated.
///
/// For a lookup among tokens that were validated before; a miss goes through `AuthorizationValue`.
package func bearerCandidate(_ bytes: Span<UInt8>, of value: ByteRange) -> ByteRange? {
    guard value.count > 7, bytes.spells("bearer", at: value.start), bytes[value.start &+ 6] == 0x20 else { return nil }
    var start = value.start &+ 7
    while start < value.end, bytes[start] == 0x20 { start &+= 1 }
    return ByteRange(from: start, to: value.end)
}
