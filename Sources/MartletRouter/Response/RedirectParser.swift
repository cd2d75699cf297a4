/// Parses the target of a redirect, and rejects one that a request could turn into a target on another host.
struct RedirectParser {
    private static let maximumBytes = 2048
    private static let schemes = ["https://", "http://"]

    private var parts: [RedirectTemplate.Part] = []
    private var literal: [UInt8] = []
    private var component = RedirectTemplate.Component.path
    /// Whether the host has any text.
    private var hasHost = false

    static func parse(_ text: String) throws(PatternError) -> [RedirectTemplate.Part] {
        guard text.utf8.count <= maximumBytes else { throw PatternError("is longer than \(maximumBytes) bytes") }
        guard text.utf8.allSatisfy({ isAllowed($0) || $0 == UInt8(ascii: "#") }) else {
            throw PatternError("has a character that must be percent-encoded in a URL")
        }
        var parser = RedirectParser()
        try parser.read(text)
        return parser.parts
    }

    /// Whether a byte can stand in the path or the query of a URL.
    static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case 0...0x20, 0x7F...0xFF, 0x22, 0x23, 0x3C, 0x3E, 0x5C, 0x5E, 0x60, 0x7B, 0x7C, 0x7D: false
        default: true
        }
    }

    private mutating func read(_ text: String) throws(PatternError) {
        var rest = Array(text.utf8)[...]
        if let scheme = Self.schemes.first(where: { text.hasPrefix($0) }) {
            component = .authority
            literal = Array(scheme.utf8)
            rest = rest.dropFirst(literal.count)
        } else {
            guard rest.first == .slash || text.hasPrefix("$path"), !text.hasPrefix("//") else {
                throw PatternError("must begin with https://, http://, a single '/' or $path")
            }
        }
        while let byte = rest.first {
            if byte == UInt8(ascii: "$") {
                let name = rest.dropFirst().prefix { $0.isLetter }
                try readVariable(String(decoding: name, as: UTF8.self))
                rest = rest[name.endIndex...]
            } else {
                try readLiteral(byte)
                rest = rest.dropFirst()
            }
        }
        endLiteral()
        guard component != .authority || hasHost else { throw PatternError("has no host") }
    }

    private mutating func readLiteral(_ byte: UInt8) throws(PatternError) {
        switch (component, byte) {
        case (.authority, .slash), (.authority, UInt8(ascii: "?")), (.authority, UInt8(ascii: "#")):
            guard hasHost else { throw PatternError("has no host") }
            component = byte == .slash ? .path : byte == UInt8(ascii: "?") ? .query : .fragment
        case (.authority, _):
            guard byte.isLetter || byte.isDigit || "-._:[]".utf8.contains(byte) else {
                throw PatternError("has a host with '\(UnicodeScalar(byte))'")
            }
            guard hasHost || byte != UInt8(ascii: ":") else { throw PatternError("has no host") }
            hasHost = true
        case (.path, UInt8(ascii: "?")): component = .query
        case (.path, UInt8(ascii: "#")), (.query, UInt8(ascii: "#")): component = .fragment
        case (.fragment, UInt8(ascii: "#")): throw PatternError("has two '#'")
        default: break
        }
        literal.append(byte)
    }

    private mutating func readVariable(_ name: String) throws(PatternError) {
        guard component != .fragment else { throw PatternError("has a variable behind '#'") }
        switch name {
        case "path":
            if component == .authority {
                guard hasHost else { throw PatternError("has no host") }
                component = .path
            } else if component == .path, literal.last == .slash {
                throw PatternError("has '/' before $path, which begins with one")
            }
            endLiteral()
            parts.append(.path(in: component))
        case "query":
            guard component == .query else { throw PatternError("has $query, but no '?' before it") }
            endLiteral()
            parts.append(.query)
        case "host":
            endLiteral()
            parts.append(.host(in: component))
            hasHost = true
        default: throw PatternError("has '$\(name)': variables are $path, $query and $host; '%24' is a dollar sign")
        }
    }

    private mutating func endLiteral() {
        guard !literal.isEmpty else { return }
        parts.append(.literal(literal))
        literal = []
    }
}
