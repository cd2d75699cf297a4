private import MartletCore

extension ConfigurationNode {
    /// Parses a YAML text into a tree and expands its variables.
    ///
    /// - Parameters:
    ///   - text: at most 16 MiB of UTF-8.
    ///   - file: the path shown in positions; relative paths are resolved against it.
    ///   - environment: looks up `${VAR}`.
    ///   - diagnostics: where syntax errors, duplicate keys and unset variables are recorded.
    /// - Returns: the tree; `nil` after a syntax error or an exceeded limit.
    public static func parse(
        _ text: [UInt8], file: String, environment: @escaping (String) -> String?, into diagnostics: inout Diagnostics
    ) -> ConfigurationNode? {
        parseDocument(text, file: file, environment: environment, into: &diagnostics)?.node
    }

    /// The tree, and the positions of scalars with unresolved variables, for which no further errors should be
    /// reported.
    static func parseDocument(
        _ text: [UInt8], file: String, environment: @escaping (String) -> String?, into diagnostics: inout Diagnostics
    ) -> (node: ConfigurationNode, unresolvedScalars: Set<SourceLocation>)? {
        guard text.count <= NodeBuilder.Limit.fileBytes else {
            diagnostics.error(
                .configTooLarge, at: SourceLocation(file: file, line: 1, column: 1),
                "the file is larger than \(ByteSize(bytes: NodeBuilder.Limit.fileBytes).configurationText)")
            return nil
        }
        do {
            let text = try withoutByteOrderMark(text, file)
            var builder = try NodeBuilder(text, file: file, environment: environment)
            defer { diagnostics.add(builder.diagnostics) }
            let node = try builder.document()
            return (node, builder.unresolvedScalars)
        } catch {
            diagnostics.add(error)
            return nil
        }
    }

    /// The text without a UTF-8 byte order mark, which some editors write.
    ///
    /// - Throws: for UTF-16 and UTF-32, with or without a mark: a configuration begins with an ASCII character.
    private static func withoutByteOrderMark(_ text: [UInt8], _ file: String) throws(ConfigurationError) -> [UInt8] {
        if text.starts(with: [0xEF, 0xBB, 0xBF]) { return Array(text.dropFirst(3)) }
        let isWide = text.starts(with: [0xFF, 0xFE]) || text.starts(with: [0xFE, 0xFF]) || text.prefix(2).contains(0)
        guard !isWide else {
            throw ConfigurationError(
                .configYAMLSyntax, at: SourceLocation(file: file, line: 1, column: 1),
                "the file is UTF-16 or UTF-32 text: save it as UTF-8")
        }
        return text
    }
}
