extension ConfigurationNode {
    /// Decodes a block strictly and records its own errors, those of nested blocks, and unknown keys.
    ///
    /// - Parameters:
    ///   - type: the type to decode.
    ///   - title: the name of the block in messages: `provider 'apple'`.
    ///   - diagnostics: receives all errors and warnings.
    /// - Returns: the value, or `nil` if the block has errors.
    public func decode<Block: ConfigurationDecodable>(
        _ type: Block.Type, title: String, into diagnostics: inout Diagnostics
    ) -> Block? {
        var reader: ConfigurationReader
        do { reader = try ConfigurationReader(self, title: title, of: { Block.grammar }) } catch {
            diagnostics.add(error)
            return nil
        }
        var block: Block?
        do {
            block = try Block(from: &reader)
            reader.finish()
        } catch {
            reader.diagnostics.add(error)
            // After an early throw only a grammar knows all keys of the block.
            if reader.grammarKeys != nil { reader.finish() }
        }
        diagnostics.add(reader.diagnostics)
        return reader.diagnostics.hasErrors ? nil : block
    }

    /// Decodes a block that is one of the forms of a value.
    func block<Block: ConfigurationDecodable>(_ type: Block.Type, title: String) throws(ConfigurationError) -> Block {
        var diagnostics = Diagnostics()
        guard let block = decode(type, title: title, into: &diagnostics) else {
            throw ConfigurationError(diagnostics.errors)
        }
        return block
    }
}
