internal import MartletConfig

/// Rewrites a configuration of an older version in the grammar of this one, and leaves everything else as it is.
struct ConfigurationMigration {
    /// A key that has another name now.
    struct Rename: Sendable {
        /// The blocks that have the key: `routes[].auth`, `upstreams.*`; empty for the file itself.
        let block: String
        let old: String
        let new: String
        /// Values that have other names now.
        var values: [String: String] = [:]
    }

    /// What one edit does, for the operator.
    struct Change: Equatable {
        let location: SourceLocation
        let text: String
    }

    /// Everything that was renamed since the first version. Append to it when a key changes its name; never remove.
    static let renames: [Rename] = []

    /// The text with every change made.
    let text: [UInt8]
    let changes: [Change]

    /// - Throws: `ConfigurationError` for a text that is not YAML, or has a version that is not known.
    init(
        _ text: [UInt8], file: String, renames: [Rename] = ConfigurationMigration.renames
    ) throws(ConfigurationError) {
        var diagnostics = Diagnostics()
        // Values are not looked at, so variables need none.
        let root = ConfigurationNode.parse(text, file: file, environment: { _ in "x" }, into: &diagnostics)
        guard let root, !diagnostics.hasErrors else { throw ConfigurationError(diagnostics.errors) }
        if let version = root["version"], case .scalar(let scalar) = version.content, scalar.text != "1" {
            throw ConfigurationError(
                .configBadVersion, at: version.location,
                "version \(quoted(scalar.text)) is not known: the only one is 1")
        }
        var editor = TextEditor(text)
        for rename in renames {
            for block in Self.blocks(root, rename.block) { Self.apply(rename, to: block, &editor) }
        }
        if root["version"] == nil, let first = root.entries?.first {
            editor.insert("version: 1\n\n", before: first.key.location, "'version' is required: it is 1")
        }
        self.text = editor.edited
        changes = editor.changes.sorted {
            ($0.location.line, $0.location.column) < ($1.location.line, $1.location.column)
        }
    }

    /// The blocks at a path.
    private static func blocks(_ root: ConfigurationNode, _ path: String) -> [ConfigurationNode] {
        path.split(separator: ".").reduce([root]) { nodes, part in
            let isList = part.hasSuffix("[]")
            let name = String(isList ? part.dropLast(2) : part)
            let inner =
                name == "*"
                ? nodes.flatMap { ($0.entries ?? []).map(\.value) } : nodes.compactMap { $0[name] }
            return isList ? inner.flatMap { $0.elements ?? [] } : inner
        }
    }

    private static func apply(_ rename: Rename, to block: ConfigurationNode, _ editor: inout TextEditor) {
        guard let entry = block.entries?.first(where: { $0.key.value == rename.old }) else { return }
        // With both, only the operator knows which one is meant.
        guard block[rename.new] == nil else { return }
        if rename.old != rename.new {
            editor.replace(rename.old, by: rename.new, at: entry.key.location, "'\(rename.old)' is '\(rename.new)' now")
        }
        guard case .scalar(let scalar) = entry.value.content, let value = rename.values[scalar.text] else { return }
        editor.replace(scalar.text, by: value, at: entry.value.location, "'\(scalar.text)' is '\(value)' now")
    }
}

/// Edits of a text at positions of its nodes; the last edit of the text is made first, so that positions stay right.
private struct TextEditor {
    private struct Edit {
        let range: Range<Int>
        let replacement: String
    }

    private let text: [UInt8]
    /// The offset of each line.
    private let lines: [Int]
    private var edits: [Edit] = []
    private(set) var changes: [ConfigurationMigration.Change] = []

    init(_ text: [UInt8]) {
        self.text = text
        let start = text.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
        lines = [start] + text.indices.filter { text[$0] == 0x0A }.map { $0 + 1 }
    }

    /// Replaces a word, in quotes or not; anything else at the position, such as an alias, is left alone.
    mutating func replace(_ old: String, by new: String, at location: SourceLocation, _ note: String) {
        guard var offset = offset(of: location) else { return }
        if offset < text.count, text[offset] == 0x22 || text[offset] == 0x27 { offset += 1 }
        let range = offset..<(offset + old.utf8.count)
        guard range.upperBound <= text.count, text[range].elementsEqual(old.utf8),
            !edits.contains(where: { $0.range == range })
        else { return }
        edits.append(Edit(range: range, replacement: new))
        changes.append(.init(location: location, text: note))
    }

    mutating func insert(_ new: String, before location: SourceLocation, _ note: String) {
        guard let offset = offset(of: location) else { return }
        edits.append(Edit(range: offset..<offset, replacement: new))
        changes.append(.init(location: location, text: note))
    }

    /// Columns count characters, not bytes.
    private func offset(of location: SourceLocation) -> Int? {
        guard lines.indices.contains(location.line - 1) else { return nil }
        var offset = lines[location.line - 1]
        var column = 1
        while column < location.column, offset < text.count, text[offset] != 0x0A {
            offset += 1
            while offset < text.count, text[offset] & 0xC0 == 0x80 { offset += 1 }
            column += 1
        }
        return column == location.column ? offset : nil
    }

    var edited: [UInt8] {
        var result = text
        for edit in edits.sorted(by: { $0.range.lowerBound > $1.range.lowerBound }) {
            result.replaceSubrange(edit.range, with: edit.replacement.utf8)
        }
        return result
    }
}
