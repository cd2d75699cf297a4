internal import MartletConfig
internal import MartletCore
internal import MartletHTTP

/// The fields of responses that a route sets and removes.
///
/// A class, so that an exchange without any only has a reference. It edits heads that are written already: an
/// upstream's, a handler's and those of errors have the same form.
final class ResponseFieldRules: Sendable {
    private struct Field: Sendable {
        /// In lower case.
        let name: [UInt8]
        let line: [UInt8]
        /// Whether it replaces even a field that the gateway has written itself.
        let replacesOwn: Bool
    }

    private let set: [Field]
    /// In lower case.
    private let removed: [[UInt8]]

    /// `nil` if there are none.
    init?(_ configuration: ResponseHeaderConfiguration) {
        guard !configuration.isEmpty else { return nil }
        set = configuration.set.map { field in
            let name = field.name.lowercased()
            return Field(
                name: Array(name.utf8), line: Array("\(field.name): \(field.value)\r\n".utf8),
                replacesOwn: name == "strict-transport-security")
        }
        removed = configuration.remove.map { Array($0.utf8) }
    }

    /// The head of an upstream's response, which is the last of those in `bytes`, with its fields set and removed.
    func edited(lastHeadIn bytes: Span<UInt8>) -> [UInt8] {
        Self.edited(bytes, isOwn: false) { head, out in edit(head, isOwn: false, into: &out) }
    }

    /// A whole response of the gateway itself, with fields set: its own fields stay.
    func edited(ownResponse bytes: Span<UInt8>) -> [UInt8] {
        Self.edited(bytes, isOwn: true) { head, out in edit(head, isOwn: true, into: &out) }
    }

    /// Bytes that were written for a client, with the head of the final response edited.
    ///
    /// - Parameter isOwn: whether that head is the first of them, and a body may follow; otherwise it is the last.
    static func edited(
        _ bytes: Span<UInt8>, isOwn: Bool, _ edit: (_ head: Span<UInt8>, _ out: inout [UInt8]) -> Void
    ) -> [UInt8] {
        var (start, end) = (0, bytes.count)
        if isOwn {
            end = 0
            while end < bytes.count, !isEndOfHead(bytes, at: end) { end += 1 }
        } else {
            start = max(bytes.count - 5, 0)
            while start > 0, !isEndOfHead(bytes, at: start) { start -= 1 }
        }
        var out: [UInt8] = []
        out.reserveCapacity(bytes.count + 256)
        append(bytes.extracting(0..<start), to: &out)
        edit(bytes.extracting(start..<end), &out)
        append(bytes.extracting(end..<bytes.count), to: &out)
        return out
    }

    /// Whether an empty line ends before an offset.
    private static func isEndOfHead(_ bytes: Span<UInt8>, at offset: Int) -> Bool {
        offset >= 4 && bytes[offset - 1] == 0x0A && bytes[offset - 2] == 0x0D && bytes[offset - 3] == 0x0A
    }

    private func edit(_ head: Span<UInt8>, isOwn: Bool, into out: inout [UInt8]) {
        var present = [Bool](repeating: false, count: set.count)
        Self.forEachLine(of: head) { line in
            // The empty line: the fields that are set come before it.
            if line.count <= 2 {
                for (index, field) in set.enumerated() where !present[index] { out += field.line }
            }
            let index = set.firstIndex { Self.names(line, $0.name) }
            if let index, isOwn, !set[index].replacesOwn {
                present[index] = true
            } else if index != nil || !isOwn && removed.contains(where: { Self.names(line, $0) }) {
                return
            }
            Self.append(line, to: &out)
        }
    }

    /// Calls a function with each line, which includes its line break.
    static func forEachLine(of head: Span<UInt8>, _ body: (_ line: Span<UInt8>) -> Void) {
        var start = 0
        while start < head.count {
            var end = start
            while end < head.count, head[end] != 0x0A { end += 1 }
            end = min(end + 1, head.count)
            body(head.extracting(start..<end))
            start = end
        }
    }

    /// Whether a line is a field of that name.
    static func names(_ line: Span<UInt8>, _ name: [UInt8]) -> Bool {
        line.count > name.count && line[name.count] == UInt8(ascii: ":") && begins(line, with: name)
    }

    /// Whether a line begins with a text in any letter case.
    /// - Parameter text: in lower case.
    static func begins(_ line: Span<UInt8>, with text: [UInt8]) -> Bool {
        guard line.count >= text.count else { return false }
        for index in text.indices {
            let byte = line[index]
            guard byte == text[index] || byte &- 0x41 < 26 && byte | 0x20 == text[index] else { return false }
        }
        return true
    }

    static func append(_ bytes: Span<UInt8>, to out: inout [UInt8]) {
        for index in 0..<bytes.count { out.append(bytes[index]) }
    }
}
