/// Where a browser goes from `Location`: as much of the URL Standard (WHATWG, "basic URL parser") as decides the origin.
enum BrowserURL {
    private static let special = ["http", "https", "ftp", "ws", "wss", "file"]

    /// The origin that a browser requests, for a page of `base`; `nil` if the URL has none.
    static func origin(of text: [UInt8], on base: String) -> String? {
        // Controls and spaces at both ends are stripped, tabs and line breaks are removed everywhere.
        var bytes = Array(text.drop { $0 <= 0x20 })
        while let last = bytes.last, last <= 0x20 { bytes.removeLast() }
        bytes.removeAll { $0 == 0x09 || $0 == 0x0A || $0 == 0x0D }
        let baseScheme = String(base.prefix { $0 != ":" })
        guard let scheme = scheme(of: bytes) else {
            guard bytes.count > 1, isSlash(bytes[0]), isSlash(bytes[1]) else { return base }
            return authority(bytes[...], baseScheme)
        }
        guard special.contains(scheme) else { return nil }
        let rest = bytes[(scheme.utf8.count + 1)...]
        if scheme == baseScheme, !(rest.count > 1 && rest.prefix(2).allSatisfy { $0 == UInt8(ascii: "/") }) {
            guard rest.count > 1, rest.prefix(2).allSatisfy(isSlash) else { return base }
        }
        return authority(rest, scheme)
    }

    /// Slashes of both kinds before a host are ignored, and a backslash ends it.
    private static func authority(_ bytes: ArraySlice<UInt8>, _ scheme: String) -> String? {
        var host = Array(bytes.drop(while: isSlash).prefix { !isSlash($0) && !"?#".utf8.contains($0) })
        if let at = host.lastIndex(of: UInt8(ascii: "@")) { host.removeFirst(at + 1) }
        guard !host.isEmpty else { return nil }
        let name = String(decoding: decoded(host), as: UTF8.self).lowercased()
        let port = scheme == "https" ? ":443" : scheme == "http" ? ":80" : ":-"
        return "\(scheme)://\(name.hasSuffix(port) ? String(name.dropLast(port.count)) : name)"
    }

    private static func scheme(of bytes: [UInt8]) -> String? {
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")), let first = bytes.first, isLetter(first) else {
            return nil
        }
        let isScheme = bytes[..<colon].allSatisfy {
            isLetter($0) || (0x30...0x39).contains($0) || "+-.".utf8.contains($0)
        }
        return isScheme ? String(decoding: bytes[..<colon], as: UTF8.self).lowercased() : nil
    }

    private static func decoded(_ bytes: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        var index = 0
        while index < bytes.count {
            let digits =
                index + 2 < bytes.count ? String(decoding: bytes[(index + 1)...(index + 2)], as: UTF8.self) : ""
            if bytes[index] == UInt8(ascii: "%"), let value = UInt8(digits, radix: 16) {
                result.append(value)
                index += 3
            } else {
                result.append(bytes[index])
                index += 1
            }
        }
        return result
    }

    private static func isSlash(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "/") || byte == UInt8(ascii: "\\") }
    private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7A).contains(byte | 0x20) && byte >= 0x41 }
}
