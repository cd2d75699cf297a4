/// Parses the node lists that proxies write (RFC 7239 §4 and §6).
enum ForwardedNodes {
    /// The `for` of every element of `Forwarded`, in order; empty for an element without one, or a malformed one.
    static func nodes(of value: [UInt8]) -> [[UInt8]] {
        parts(of: value, at: UInt8(ascii: ",")).map { element in
            var node: [UInt8]?
            for pair in parts(of: element, at: UInt8(ascii: ";")) {
                guard let equals = pair.firstIndex(of: UInt8(ascii: "=")),
                    String(decoding: trimmed(pair[..<equals]), as: UTF8.self).lowercased() == "for"
                else { continue }
                // A duplicate is ambiguous.
                guard node == nil else { return [] }
                node = unquoted(trimmed(pair[(equals + 1)...]))
            }
            return node ?? []
        }
    }

    /// The address of a node without brackets and port; `nil` for an invalid one.
    static func address(in node: [UInt8]) -> [UInt8]? {
        let node = trimmed(node[...])
        if node.first == UInt8(ascii: "[") {
            guard let end = node.firstIndex(of: UInt8(ascii: "]")) else { return nil }
            let rest = node[(end + 1)...]
            guard rest.isEmpty || isPort(rest) else { return nil }
            return Array(node[1..<end])
        }
        // One colon precedes a port; two or more are part of an IPv6 address.
        guard let colon = node.firstIndex(of: UInt8(ascii: ":")), colon == node.lastIndex(of: UInt8(ascii: ":"))
        else { return node }
        return isPort(node[colon...]) ? Array(node[..<colon]) : nil
    }

    /// Whether bytes are a colon and up to five digits.
    private static func isPort(_ bytes: ArraySlice<UInt8>) -> Bool {
        bytes.first == UInt8(ascii: ":") && (2...6).contains(bytes.count)
            && bytes.dropFirst().allSatisfy { $0 &- 48 < 10 }
    }

    /// The parts between separators outside quoted strings.
    private static func parts(of value: [UInt8], at separator: UInt8) -> [[UInt8]] {
        var parts: [[UInt8]] = []
        var part: [UInt8] = []
        var isQuoted = false
        var isEscaped = false
        for byte in value {
            if byte == separator, !isQuoted {
                parts.append(part)
                part = []
                continue
            }
            if byte == UInt8(ascii: "\""), !isEscaped { isQuoted.toggle() }
            isEscaped = isQuoted && !isEscaped && byte == UInt8(ascii: "\\")
            part.append(byte)
        }
        return parts + [part]
    }

    /// A value without its quotes; empty for one with unbalanced quotes, or with a backslash, which no address
    /// contains.
    private static func unquoted(_ value: [UInt8]) -> [UInt8] {
        guard value.contains(UInt8(ascii: "\"")) else { return value }
        guard value.count >= 2, value.first == UInt8(ascii: "\""), value.last == UInt8(ascii: "\"") else { return [] }
        let text = Array(value[1..<(value.count - 1)])
        return text.contains { $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") } ? [] : text
    }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> [UInt8] {
        func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
        let rest = bytes.drop(while: isBlank)
        guard let last = rest.lastIndex(where: { !isBlank($0) }) else { return [] }
        return Array(rest[...last])
    }
}
