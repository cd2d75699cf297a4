import MartletHTTP

/// `to` of a rewrite: text with the groups of an expression, `$1` to `$9`.
///
/// A group's text is inserted as it is and never read as a template again.
struct ReplacementTemplate: Sendable {
    /// The outcome for a path.
    enum Outcome: Equatable {
        case unmatched
        /// The expression exceeded its match limit.
        case failed
        /// - Parameter query: without the question mark; empty where the template has none.
        case replaced(path: [UInt8], query: [UInt8])
    }

    private enum Part: Sendable {
        case literal([UInt8])
        case group(Int)
    }

    private static let maximumBytes = 2048

    private var path: [Part] = []
    private var query: [Part] = []

    /// - Parameter groups: how many the expression has.
    init(_ text: String, groups: Int) throws(PatternError) {
        guard text.utf8.count <= Self.maximumBytes else {
            throw PatternError("is longer than \(Self.maximumBytes) bytes")
        }
        guard text.hasPrefix("/") || text.hasPrefix("$") else { throw PatternError("must begin with '/' or a group") }
        guard text.utf8.allSatisfy(RedirectParser.isAllowed) else {
            throw PatternError("has a character that must be percent-encoded in a URL")
        }
        var literal: [UInt8] = []
        var isQuery = false
        var bytes = Array(text.utf8)[...]
        while let byte = bytes.popFirst() {
            switch byte {
            case UInt8(ascii: "$"):
                guard let digit = bytes.popFirst(), digit.isDigit, digit > 0x30 else {
                    throw PatternError("has a '$' without a group: groups are $1 to $9; '%24' is a dollar sign")
                }
                let group = Int(digit &- 0x30)
                guard group <= groups else { throw PatternError("has $\(group), but 'regex' has \(groups) groups") }
                add(.literal(literal), isQuery)
                literal = []
                add(.group(group), isQuery)
            case UInt8(ascii: "?") where !isQuery:
                add(.literal(literal), isQuery)
                literal = []
                isQuery = true
            default: literal.append(byte)
            }
        }
        add(.literal(literal), isQuery)
    }

    private mutating func add(_ part: Part, _ isQuery: Bool) {
        if case .literal(let text) = part, text.isEmpty { return }
        if isQuery { query.append(part) } else { path.append(part) }
    }

    /// Replaces a path that the expression matches as a whole.
    func apply(_ expression: RegularExpression, to path: Span<UInt8>) -> Outcome {
        let (outcome, groups) = expression.groups(in: path)
        switch outcome {
        case .unmatched: return .unmatched
        case .failed: return .failed
        case .matched: break
        }
        var (newPath, newQuery): ([UInt8], [UInt8]) = ([], [])
        for part in self.path {
            switch part {
            case .literal(let text): newPath += text
            case .group(let number):
                for index in Self.bounds(of: number, groups) { newPath.append(path[index]) }
            }
        }
        for part in query {
            switch part {
            case .literal(let text): newQuery += text
            case .group(let number):
                for index in Self.bounds(of: number, groups) { Self.append(path[index], to: &newQuery) }
            }
        }
        return .replaced(path: newPath, query: newQuery)
    }

    /// The bytes of a group; none if it took no part in the match.
    private static func bounds(of group: Int, _ groups: [Range<Int>]) -> Range<Int> {
        groups.indices.contains(group) ? groups[group] : 0..<0
    }

    /// Appends a byte of a path to the value of a parameter, which it must not end.
    private static func append(_ byte: UInt8, to query: inout [UInt8]) {
        // A '%' of a path begins the encoding of a byte, which means the same in a query.
        guard !byte.isUnreserved, byte != .percent, byte != .slash, byte != .colon else { return query.append(byte) }
        query += [.percent, (byte >> 4).hexadecimalDigit, byte.hexadecimalDigit]
    }
}
