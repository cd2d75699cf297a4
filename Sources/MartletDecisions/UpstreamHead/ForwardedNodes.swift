internal import MartletHTTP

/// What one proxy says in an element of `Forwarded` (RFC 7239 §4): empty where it says nothing, or something malformed.
package struct ForwardedElement: Equatable {
    /// Who sent the request to it (`for`).
    package var node: [UInt8] = []
    package var proto: [UInt8] = []
    package var host: [UInt8] = []

    /// `http` or `https`.
    package var scheme: String? {
        let text = String(decoding: proto, as: UTF8.self).lowercased()
        return text == "http" || text == "https" ? text : nil
    }

    /// The host, if a request could have it.
    var validHost: [UInt8]? { HostValue.isValid(host.span) ? host : nil }
}

/// Parses the node lists that proxies write (RFC 7239 §4 and §6).
enum ForwardedNodes {
    /// The elements of `Forwarded`, in order.
    package static func elements(of value: [UInt8]) -> [ForwardedElement] {
        parts(of: value, at: UInt8(ascii: ",")).map { element in
            var found: [String: [UInt8]] = [:]
            for pair in parts(of: element, at: UInt8(ascii: ";")) {
                guard let equals = pair.firstIndex(of: UInt8(ascii: "=")) else { continue }
                let name = String(decoding: trimmed(pair[..<equals]), as: UTF8.self).lowercased()
                guard ["for", "proto", "host"].contains(name) else { continue }
                // A duplicate is ambiguous.
                guard found[name] == nil else { return ForwardedElement() }
                found[name] = unquoted(trimmed(pair[(equals + 1)...]))
            }
            return ForwardedElement(node: found["for"] ?? [], proto: found["proto"] ?? [], host: found["host"] ?? [])
        }
    }

    /// The address of a node without brackets and port; `nil` for an invalid one.
    package static func address(in node: [UInt8]) -> [UInt8]? {
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
