/// URLs in attributes of pages.
package enum PageURL {
    /// Longer than any URL that a page is given; a `return_to` has at most 2 KiB before it is encoded.
    package static let maximumBytes = 8192

    /// Whether a page may link to it: an absolute path of this origin, or a URL of `http` or `https`.
    ///
    /// Browsers read `\` as `/` and drop tabs and line breaks, so none of them may be in it.
    package static func isAllowed(_ url: String) -> Bool {
        let bytes = url.utf8
        guard bytes.count <= maximumBytes, bytes.allSatisfy({ $0 > 0x20 && $0 != 0x7F && $0 != 0x5C }) else {
            return false
        }
        if bytes.first == UInt8(ascii: "/") { return bytes.dropFirst().first != UInt8(ascii: "/") }
        return ["http://", "https://"].contains { scheme in
            bytes.count > scheme.utf8.count
                && bytes.prefix(scheme.utf8.count).elementsEqual(scheme.utf8) { $0 == $1 || $0 | 0x20 == $1 }
                && bytes.dropFirst(scheme.utf8.count).first != UInt8(ascii: "/")
        }
    }

    /// A path with more parameters in its query; `nil` values are left out.
    package static func local(_ path: String, _ parameters: [(name: String, value: String?)]) -> String {
        var url = path
        for case (let name, let value?) in parameters {
            url += "\(url.utf8.contains(UInt8(ascii: "?")) ? "&" : "?")\(encode(name))=\(encode(value))"
        }
        return url
    }

    /// Whether a text is an origin as `form-action` takes it: a scheme, a host, and maybe a port.
    package static func isOrigin(_ text: String) -> Bool {
        guard let scheme = ["http://", "https://"].first(where: text.hasPrefix) else { return false }
        let host = text.utf8.dropFirst(scheme.utf8.count)
        return !host.isEmpty && host.count <= 261
            && host.allSatisfy { byte in
                (0x61...0x7A).contains(byte | 0x20) && byte >= 0x41 || (0x30...0x39).contains(byte)
                    || "-.:[]".utf8.contains(byte)
            }
    }

    /// Everything but unreserved characters (RFC 3986 §2.3) in percent-encoding; `/` is allowed in queries.
    private static func encode(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var encoded: [UInt8] = []
        for byte in text.utf8 {
            let isLetter = (0x61...0x7A).contains(byte | 0x20) && byte >= 0x41
            if isLetter || (0x30...0x39).contains(byte) || "-._~/".utf8.contains(byte) {
                encoded.append(byte)
            } else {
                encoded += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: encoded, as: UTF8.self)
    }
}
