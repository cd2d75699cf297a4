package import MartletConfig
internal import MartletCore
internal import MartletHTTP

/// The fields of responses that a route sets and removes.
///
/// A class, so that an exchange without any only has a reference. It edits heads that are written already: an
/// upstream's, a handler's and those of errors have the same form.
package final class ResponseFieldRules: Sendable {
    private struct Field: Sendable {
        /// In lower case.
        package let name: [UInt8]
        package let line: [UInt8]
        /// Whether it replaces even a field that the gateway has written itself.
        let replacesOwn: Bool
    }

    private let set: [Field]
    /// In lower case.
    private let removed: [[UInt8]]

    /// `nil` if there are none.
    package init?(_ configuration: ResponseHeaderConfiguration) {
        guard !configuration.isEmpty else { return nil }
        set = configuration.set.map { field in
            let name = field.name.lowercased()
            return Field(
                name: Array(name.utf8), line: Array("\(field.name): \(field.value)\r\n".utf8),
                replacesOwn: name == "strict-transport-security")
        }
        removed = configuration.remove.map { Array($0.utf8) }
    }

    /// The lines of a head with fields set and removed.
    /// - Parameter isOwn: whether the head is one of the gateway itself, whose fields stay.
    package func edit(_ head: Span<UInt8>, isOwn: Bool, into out: inout [UInt8]) {
        var present = [Bool](repeating: false, count: set.count)
        Self.forEachLine(of: head) { line in
            let index = set.firstIndex { Self.names(line, $0.name) }
            if let index, isOwn, !set[index].replacesOwn {
                present[index] = true
            } else if index != nil || !isOwn && removed.contains(where: { Self.names(line, $0) }) {
                return
            }
            Self.append(line, to: &out)
        }
        for (index, field) in set.enumerated() where !present[index] { out += field.line }
    }

    /// Calls a function with each line, which includes its line break.
    static func forEachLine(of head: Span<UInt8>, _ body: (_ line: Span<UInt8>) -> Void) {
        var start = 0
        while start < head.count {
            let end = head.nextLine(from: start)
            body(head.extracting(start..<end))
            start = end
        }
    }

    /// Whether a line is a field of that name.
    package static func names(_ line: Span<UInt8>, _ name: [UInt8]) -> Bool {
        line.count > name.count && line[name.count] == UInt8(ascii: ":") && begins(line, with: name)
    }

    /// Whether a line begins with a text in any letter case.
    /// - Parameter text: in lower case.
    package static func begins(_ line: Span<UInt8>, with text: [UInt8]) -> Bool {
        guard line.count >= text.count else { return false }
        for index in text.indices {
            let byte = line[index]
            guard byte == text[index] || byte &- 0x41 < 26 && byte | 0x20 == text[index] else { return false }
        }
        return true
    }

    static func append(_ bytes: Span<UInt8>, to out: inout [UInt8]) {
        unsafe bytes.withUnsafeBufferPointer { unsafe out.append(contentsOf: $0) }
    }
}
