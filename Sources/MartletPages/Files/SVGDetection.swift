/// Recognizes an SVG by what stands before its first element.
enum SVGDetection {
    private static let namespace = "http://www.w3.org/2000/svg"

    /// Whether the first element of an XML document in UTF-8 is `svg`, with the namespace that browsers need.
    static func isSVG(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        if rest.starts(with: [0xEF, 0xBB, 0xBF]) { rest.removeFirst(3) }
        while true {
            rest = rest.drop { $0 == 0x20 || $0 == 0x09 || $0 == 0x0A || $0 == 0x0D }
            if rest.starts(with: "<?".utf8) {
                guard skip("?>", &rest) else { return false }
            } else if rest.starts(with: "<!--".utf8) {
                rest = rest.dropFirst(4)
                guard skip("-->", &rest) else { return false }
            } else if rest.starts(with: "<!DOCTYPE".utf8) {
                guard skipDeclaration(&rest) else { return false }
            } else {
                return isElement(rest)
            }
        }
    }

    private static func isElement(_ rest: ArraySlice<UInt8>) -> Bool {
        guard rest.starts(with: "<svg".utf8), let next = rest.dropFirst(4).first, next <= 0x20 || next == 0x3E,
            let end = rest.firstIndex(of: 0x3E)
        else { return false }
        // Only the root element's tag: one with the namespace further inside does not make the document an SVG.
        return contains(namespace, rest[...end])
    }

    /// A document type, whose internal subset is in brackets.
    private static func skipDeclaration(_ rest: inout ArraySlice<UInt8>) -> Bool {
        guard let end = rest.firstIndex(where: { $0 == 0x3E || $0 == 0x5B }) else { return false }
        let hasSubset = rest[end] == 0x5B
        rest = rest[(end + 1)...]
        return !hasSubset || skip("]", &rest) && skip(">", &rest)
    }

    /// Removes what is before the mark, and the mark.
    private static func skip(_ mark: String, _ rest: inout ArraySlice<UInt8>) -> Bool {
        let mark = Array(mark.utf8)
        guard let index = rest.indices.first(where: { rest[$0...].starts(with: mark) }) else { return false }
        rest = rest[(index + mark.count)...]
        return true
    }

    private static func contains(_ text: String, _ bytes: ArraySlice<UInt8>) -> Bool {
        bytes.indices.contains { bytes[$0...].starts(with: text.utf8) }
    }
}
