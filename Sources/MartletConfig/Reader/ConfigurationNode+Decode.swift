extension ConfigurationNode {
    /// Decodes a block strictly: its own errors, those of blocks inside it, and the keys that do not belong are recorded.
    ///
    /// - Parameters:
    ///   - type: what the block stands for.
    ///   - title: what the block is, for messages: `provider 'apple'`.
    ///   - diagnostics: where everything found is recorded.
    /// - Returns: the value, or `nil` if anything recorded for this block is an error.
    public func decode<Block: ConfigurationDecodable>(
        _ type: Block.Type, title: String, into diagnostics: inout Diagnostics
    ) -> Block? {
        var reader: ConfigurationReader
        do { reader = try ConfigurationReader(self, title: title, grammar: Block.grammar) } catch {
            diagnostics.add(error)
            return nil
        }
        var block: Block?
        do {
            block = try Block(from: &reader)
            reader.finish()
        } catch {
            reader.diagnostics.add(error)
            // After a throw the keys that were not asked for yet are only known from a grammar.
            if reader.vocabulary != nil { reader.finish() }
        }
        diagnostics.add(reader.diagnostics)
        return reader.diagnostics.hasErrors ? nil : block
    }
}
