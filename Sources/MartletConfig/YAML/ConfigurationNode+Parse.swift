private import MartletCore

extension ConfigurationNode {
    /// Reads a YAML text into a tree and replaces its variables.
    ///
    /// - Parameters:
    ///   - text: at most 1 MiB of UTF-8.
    ///   - file: the name that positions carry, and against which relative paths are resolved.
    ///   - environment: looks up `${VAR}`.
    ///   - diagnostics: where syntax errors, duplicate keys and unset variables are recorded.
    /// - Returns: the tree; `nil` when the text has no structure to go on with.
    public static func parse(
        _ text: [UInt8], file: String, environment: @escaping (String) -> String?, into diagnostics: inout Diagnostics
    ) -> ConfigurationNode? {
        parseDocument(text, file: file, environment: environment, into: &diagnostics)?.node
    }

    /// The tree together with the scalars whose variables are unset, about which nothing more should be said.
    static func parseDocument(
        _ text: [UInt8], file: String, environment: @escaping (String) -> String?, into diagnostics: inout Diagnostics
    ) -> (node: ConfigurationNode, brokenScalars: Set<SourceLocation>)? {
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
            return (node, builder.brokenScalars)
        } catch {
            diagnostics.add(error)
            return nil
        }
    }

    /// The text behind a UTF-8 byte order mark, which some editors put there.
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
