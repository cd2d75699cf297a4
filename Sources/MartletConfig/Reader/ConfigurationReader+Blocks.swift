extension ConfigurationReader {
    /// The block under a key; `nil` if it is absent or invalid. Errors are recorded.
    public mutating func block<Block: ConfigurationDecodable>(_ key: String, as type: Block.Type = Block.self) -> Block?
    {
        node(key)?.decode(Block.self, title: title(of: key), into: &diagnostics)
    }

    /// The block under a required key.
    /// - Throws: `config.missing_key`, or ``ConfigurationError/alreadyReported`` after errors in the block were
    ///   recorded.
    public mutating func requiredBlock<Block: ConfigurationDecodable>(
        _ key: String, as type: Block.Type = Block.self
    ) throws(ConfigurationError) -> Block {
        let node = try requiredNode(key)
        guard let block = node.decode(Block.self, title: title(of: key), into: &diagnostics) else {
            throw .alreadyReported
        }
        return block
    }

    /// The blocks of a map whose keys are names chosen by the operator, in file order; empty if the key is absent.
    ///
    /// - Parameter noun: the kind of entry in messages: `app` gives `app 'ios' of provider 'wechat'`.
    public mutating func namedBlocks<Block: ConfigurationDecodable>(
        _ key: String, noun: String, as type: Block.Type = Block.self
    ) -> [(name: Located<String>, block: Block)] {
        entries(of: key).compactMap { entry in
            let title = title(of: "\(noun) \(quoted(entry.key.value))")
            return entry.value.decode(Block.self, title: title, into: &diagnostics).map { (entry.key, $0) }
        }
    }

    /// The blocks of a list, in order; empty if the key is absent.
    public mutating func blocks<Block: ConfigurationDecodable>(
        _ key: String, as type: Block.Type = Block.self
    ) -> [Located<Block>] {
        elements(of: key).enumerated().compactMap { index, element in
            element.decode(Block.self, title: title(of: "\(key)[\(index)]"), into: &diagnostics)
                .map { Located($0, at: element.location) }
        }
    }

    /// The blocks of a map of entities, with their names, which are checked.
    mutating func entities<Block: ConfigurationDecodable>(
        _ key: String, noun: String, _ name: WritableKeyPath<Block, Located<String>>
    ) -> [Block] {
        for entry in node(key)?.entries ?? [] { checkName(entry.key) }
        return namedBlocks(key, noun: noun).map { entry in
            var block: Block = entry.block
            block[keyPath: name] = entry.name
            return block
        }
    }

    /// The elements of a list; none if the key is absent, or another value, which is recorded.
    mutating func elements(of key: String) -> [ConfigurationNode] {
        guard let node = node(key) else { return [] }
        if node.elements == nil { diagnostics.add(node.mismatch("\(title(of: key)) ", mustBe: "a list")) }
        return node.elements ?? []
    }

    /// The entries of a map; none if the key is absent, or another value, which is recorded.
    mutating func entries(of key: String) -> [ConfigurationNode.Entry] {
        guard let node = node(key) else { return [] }
        if node.entries == nil { diagnostics.add(node.mismatch("\(title(of: key)) ", mustBe: "a block of names")) }
        return node.entries ?? []
    }

    /// The title of a nested block: `server.timeouts`, `timeouts of upstream 'api'`.
    func title(of key: String) -> String {
        if title == Self.documentTitle { return key }
        return title.contains(" ") ? "\(key) of \(title)" : "\(title).\(key)"
    }

    static let documentTitle = "the configuration"
}
