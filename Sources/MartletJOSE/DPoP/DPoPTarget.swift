/// The URL of a request without query and fragment, as the claim `htu` has it (RFC 9449 §4.2), normalized.
///
/// Two targets are equal if their URLs are after the normalization of RFC 3986 §6.2.2 and §6.2.3: letter case of scheme,
/// host and escapes, escapes of unreserved characters, dot segments, the default port, and the empty path.
package struct DPoPTarget: Sendable, Hashable {
    /// The normalized URL.
    let bytes: [UInt8]

    /// The target of a request.
    /// - Parameters:
    ///   - scheme: `http` or `https`, in any letter case.
    ///   - authority: the value of `Host` or `:authority`.
    ///   - path: as the client sent it; a query after it is ignored.
    /// - Returns: `nil` for another scheme, user information, an invalid port or escape, or bytes that no URL has.
    package init?(scheme: [UInt8], authority: [UInt8], path: [UInt8]) {
        let scheme = scheme.map(Self.lowered)
        let defaultPort: UInt16
        switch scheme {
        case Array("https".utf8): defaultPort = 443
        case Array("http".utf8): defaultPort = 80
        default: return nil
        }
        guard let authority = Self.authority(authority[...], defaultPort: defaultPort),
            let path = Self.path(path.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") })
        else { return nil }
        bytes = scheme + Array("://".utf8) + authority + path
    }

    /// The target in a text, such as the claim `htu`; its query and fragment are ignored (RFC 9449 §4.3).
    /// - Returns: `nil` unless it is an absolute URL as above.
    package init?(_ text: String) {
        let text = Array(text.utf8)
        guard let colon = text.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let rest = text[(colon + 1)...]
        guard rest.starts(with: Array("//".utf8)) else { return nil }
        let hierarchy = rest.dropFirst(2)
        let end = hierarchy.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }
        self.init(
            scheme: Array(text[..<colon]), authority: Array(hierarchy[..<(end ?? hierarchy.endIndex)]),
            path: Array(hierarchy[(end ?? hierarchy.endIndex)...]))
    }

    /// RFC 3986 §3.2, without user information; the port only if it is not the default.
    private static func authority(_ text: ArraySlice<UInt8>, defaultPort: UInt16) -> [UInt8]? {
        let hostEnd: Int
        let host: [UInt8]
        if text.first == UInt8(ascii: "[") {
            guard let close = text.firstIndex(of: UInt8(ascii: "]")), close > text.startIndex + 1 else { return nil }
            hostEnd = close + 1
            let address = text[(text.startIndex + 1)..<close]
            guard address.allSatisfy({ hexValue($0) != nil || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: ".") })
            else { return nil }
            host = text[..<hostEnd].map(lowered)
        } else {
            hostEnd = text.firstIndex(of: UInt8(ascii: ":")) ?? text.endIndex
            guard hostEnd > text.startIndex, let name = normalized(text[..<hostEnd], lowersLetters: true),
                name.allSatisfy(isNameByte)
            else { return nil }
            host = name
        }
        guard hostEnd < text.endIndex else { return host }
        guard text[hostEnd] == UInt8(ascii: ":") else { return nil }
        let digits = text[(hostEnd + 1)...]
        guard !digits.isEmpty else { return host }
        guard digits.count <= 5, digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        guard let port = UInt16(String(decoding: digits, as: UTF8.self)) else { return nil }
        return port == defaultPort ? host : host + Array(":\(port)".utf8)
    }

    /// RFC 3986 §5.2.4 and §6.2.3.
    private static func path(_ text: ArraySlice<UInt8>) -> [UInt8]? {
        let slash = UInt8(ascii: "/")
        guard !text.isEmpty else { return [slash] }
        guard text.first == slash, let path = normalized(text, lowersLetters: false) else { return nil }
        var segments: [ArraySlice<UInt8>] = []
        let all = path.dropFirst().split(separator: slash, omittingEmptySubsequences: false)
        for (index, segment) in all.enumerated() {
            let isDot = segment.elementsEqual(".".utf8)
            let isDotDot = segment.elementsEqual("..".utf8)
            if isDotDot { _ = segments.popLast() }
            if !isDot && !isDotDot { segments.append(segment) } else if index == all.count - 1 { segments.append([]) }
        }
        return [slash] + segments.joined(separator: [slash])
    }

    /// The text with unreserved characters unescaped and other escapes in upper case (RFC 3986 §6.2.2).
    private static func normalized(_ text: ArraySlice<UInt8>, lowersLetters: Bool) -> [UInt8]? {
        func plain(_ byte: UInt8) -> UInt8 { lowersLetters ? lowered(byte) : byte }
        var output: [UInt8] = []
        var rest = text
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                guard (0x21...0x7E).contains(byte) else { return nil }
                output.append(plain(byte))
                continue
            }
            guard let high = rest.popFirst().flatMap(hexValue), let low = rest.popFirst().flatMap(hexValue) else {
                return nil
            }
            let value = high << 4 | low
            output += isUnreserved(value) ? [plain(value)] : [byte, hexDigit(high), hexDigit(low)]
        }
        return output
    }

    private static func isUnreserved(_ byte: UInt8) -> Bool {
        isAlphanumeric(byte) || "-._~".utf8.contains(byte)
    }

    /// RFC 3986 §3.2.2: `reg-name`.
    private static func isNameByte(_ byte: UInt8) -> Bool {
        isUnreserved(byte) || "%!$&'()*+,;=".utf8.contains(byte)
    }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20)
    }

    private static func lowered(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }

    private static func hexValue(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46: byte - 0x37
        case 0x61...0x66: byte - 0x57
        default: nil
        }
    }

    private static func hexDigit(_ value: UInt8) -> UInt8 { value < 10 ? value + 0x30 : value + 0x37 }
}
