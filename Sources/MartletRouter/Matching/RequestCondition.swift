import MartletConfig
import MartletHTTP

/// One entry of `match.headers` or `match.query`.
struct RequestCondition: Sendable {
    private enum Test: Sendable {
        case equals([UInt8])
        case prefix([UInt8])
        case matches(RegularExpression)
        case present(Bool)
    }

    let source: RequestConditionConfiguration.Source
    /// In lower case for a header.
    private let name: [UInt8]
    private let test: Test

    init(_ configuration: RequestConditionConfiguration) throws(PatternError) {
        source = configuration.source
        let name = Array(configuration.name.value.utf8)
        self.name = source == .header ? name.map(\.lowercased) : name
        switch configuration.test {
        case .equals(let text): test = .equals(Array(text.utf8))
        case .prefix(let text): test = .prefix(Array(text.utf8))
        // Bytes, because a client may send any: invalid UTF-8 does not match, rather than being an error.
        case .matches(let pattern): test = .matches(try RegularExpression(pattern.value, of: .path))
        case .present(let expected): test = .present(expected)
        }
    }

    /// Tests a request: the first header of that name, or the first parameter.
    /// - Parameter head: lent `inout`, though it is only read: one that a function borrows is copied for it.
    func outcome(_ head: inout RequestHead, _ bytes: Span<UInt8>) -> RegularExpression.Outcome {
        guard source == .header else {
            guard !head.query.isEmpty else { return absent }
            let query = bytes.extracting(head.query.bounds).extracting(droppingFirst: 1)
            guard let value = QueryParameters.first(name, in: query) else { return absent }
            return outcome(of: value.span)
        }
        for index in 0..<head.fields.count {
            let field = head.fields[index]
            guard isName(bytes.extracting(field.name.bounds)) else { continue }
            return outcome(of: bytes.extracting(field.value.bounds))
        }
        return absent
    }

    private var absent: RegularExpression.Outcome { if case .present(false) = test { .matched } else { .unmatched } }

    private func isName(_ text: Span<UInt8>) -> Bool {
        guard text.count == name.count else { return false }
        for index in 0..<text.count where text[index].lowercased != name[index] { return false }
        return true
    }

    private func outcome(of value: Span<UInt8>) -> RegularExpression.Outcome {
        switch test {
        case .equals(let text): value.count == text.count && Self.begins(value, with: text) ? .matched : .unmatched
        case .prefix(let text): Self.begins(value, with: text) ? .matched : .unmatched
        case .matches(let expression): expression.match(value)
        case .present(let expected): expected ? .matched : .unmatched
        }
    }

    private static func begins(_ value: Span<UInt8>, with text: [UInt8]) -> Bool {
        guard value.count >= text.count else { return false }
        for index in text.indices where value[index] != text[index] { return false }
        return true
    }
}

/// The parameters of a query: `name=value`, separated by `&`, percent-encoded, with `+` for a space.
enum QueryParameters {
    /// The decoded value of the first parameter of a name; `nil` without one.
    static func first(_ name: [UInt8], in query: Span<UInt8>) -> [UInt8]? {
        var start = 0
        while start <= query.count {
            var end = start
            var equals = -1
            while end < query.count, query[end] != UInt8(ascii: "&") {
                if equals < 0, query[end] == UInt8(ascii: "=") { equals = end }
                end &+= 1
            }
            let endOfName = equals < 0 ? end : equals
            // A name can only be longer than what it decodes to.
            if endOfName > start, endOfName &- start >= name.count,
                decoded(query.extracting(start..<endOfName)) == name
            {
                return decoded(query.extracting(min(endOfName &+ 1, end)..<end))
            }
            start = end &+ 1
        }
        return nil
    }

    /// A text without its encoding; a `%` without two digits stands for itself.
    private static func decoded(_ text: Span<UInt8>) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count)
        var index = 0
        while index < text.count {
            if text[index] == .percent, index &+ 2 < text.count, let high = text[index &+ 1].hexadecimalValue,
                let low = text[index &+ 2].hexadecimalValue
            {
                bytes.append(high << 4 | low)
                index &+= 3
                continue
            }
            bytes.append(text[index] == UInt8(ascii: "+") ? .space : text[index])
            index &+= 1
        }
        return bytes
    }
}
