/// Finds the blocks that have a key, for one that stands at the wrong level.
enum KeyIndex {
    /// More blocks than this say nothing.
    private static let maximumBlocks = 3

    /// ` (it belongs in routes[].match)`, or an empty string.
    ///
    /// - Parameter grammar: that of the block with the unknown key; blocks in it come before those of the whole file.
    static func phrase(for key: String, in grammar: ConfigurationGrammar?) -> String {
        let inner = grammar.map { blocks(with: key, in: $0, "") } ?? []
        let found = inner.isEmpty ? blocks(with: key, in: GatewayConfiguration.grammar, "") : inner
        guard (1...maximumBlocks).contains(found.count) else { return "" }
        return " (it belongs in \(alternatives(found)))"
    }

    /// The blocks with the key, as paths: `server`, `routes[].match`.
    private static func blocks(with key: String, in grammar: ConfigurationGrammar, _ path: String) -> [String] {
        grammar.keys.flatMap { candidate in
            let block = path.isEmpty ? candidate.name : "\(path).\(candidate.name)"
            return candidate.shape.blocks.flatMap { suffix, inner -> [String] in
                (inner.keyNames.contains(key) ? [block + suffix] : []) + blocks(with: key, in: inner, block + suffix)
            }
        }
    }
}

extension ConfigurationGrammar.Shape {
    /// The blocks in a value, with what stands behind the key's name: `[]` in a list, `.*` in a map.
    package var blocks: [(suffix: String, grammar: ConfigurationGrammar)] {
        switch self {
        case .block(let grammar): [("", grammar)]
        case .list(let element, _): element.blocks.map { ("[]" + $0.suffix, $0.grammar) }
        case .map(let element): element.blocks.map { (".*" + $0.suffix, $0.grammar) }
        case .either(let shapes): shapes.flatMap(\.blocks)
        case .authorize: ConditionConfiguration.grammar.map { [("", $0)] } ?? []
        default: []
        }
    }
}
