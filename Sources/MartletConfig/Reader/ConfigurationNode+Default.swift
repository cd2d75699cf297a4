extension ConfigurationNode {
    /// The default of a key, as the grammar has it; `nil` for a text that is not YAML.
    ///
    /// A list and a block are written in `[ ]` and `{ }`; anything else is a single value, whatever characters it has.
    package init?(defaultText text: String) {
        let location = SourceLocation(file: "default", line: 1, column: 1)
        guard text.hasPrefix("[") || text.hasPrefix("{") else {
            self.init(.scalar(Scalar(text, isPlain: true)), at: location)
            return
        }
        var diagnostics = Diagnostics()
        let node = ConfigurationNode.parse(
            Array(text.utf8), file: location.file, environment: { _ in nil }, into: &diagnostics)
        guard let node, !diagnostics.hasErrors else { return nil }
        self = node
    }
}
