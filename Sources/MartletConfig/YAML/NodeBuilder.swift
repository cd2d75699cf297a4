private import MartletCore

/// Builds a tree with positions from YAML events, within limits.
struct NodeBuilder: ~Copyable {
    enum Limit {
        static let fileBytes = 16 * 1_048_576
        static let depth = 64

        /// Nodes that aliases may add to a file of a size, including nested nodes; prevents "billion laughs" expansion.
        static func aliasedNodes(_ bytes: Int) -> Int { 10_000 + bytes / 4 }
    }

    private struct Anchored {
        var node: ConfigurationNode
        var count: Int
        var height: Int
    }

    /// A node with its size, for the limits of aliases.
    private struct Built {
        var node: ConfigurationNode
        var count = 1
        var height = 1
    }

    private var parser: YAMLParser
    private let file: String
    private var variables: VariableExpansion
    private var anchors: [String: Anchored] = [:]
    private var aliasedNodes = 0
    private let maximumAliasedNodes: Int
    var diagnostics = Diagnostics()

    init(_ bytes: [UInt8], file: String, environment: @escaping (String) -> String?) throws(ConfigurationError) {
        self.file = file
        maximumAliasedNodes = Limit.aliasedNodes(bytes.count)
        variables = VariableExpansion(environment: environment)
        do { parser = try YAMLParser(bytes) } catch { throw Self.syntaxError(error, file) }
    }

    /// Scalars with unresolved variables, for which no further errors should be reported.
    var unresolvedScalars: Set<SourceLocation> { variables.unresolvedScalars }

    /// Reads the one document of the stream.
    /// - Throws: the first syntax error or exceeded limit. Duplicate keys and unset variables are recorded instead.
    mutating func document() throws(ConfigurationError) -> ConfigurationNode {
        var root: ConfigurationNode?
        while true {
            let event = try next()
            switch event.content {
            case .documentStart:
                guard root == nil else {
                    throw syntaxError(event, "only one document is allowed: a second one begins here")
                }
                let first = try next()
                root = try build(first, depth: 1).node
            case .streamEnd:
                guard let root else {
                    throw ConfigurationError(
                        .configWrongType, at: SourceLocation(file: file, line: 1, column: 1),
                        "the configuration is empty")
                }
                return root
            default: break
            }
        }
    }

    private mutating func build(_ event: YAMLEvent, depth: Int) throws(ConfigurationError) -> Built {
        guard depth <= Limit.depth else {
            throw ConfigurationError(
                .configTooLarge, at: location(of: event), "nested deeper than \(Limit.depth) levels")
        }
        guard !event.hasTag else { throw syntaxError(event, "tags such as '!!str' are not allowed") }
        if let anchor = event.anchor { anchors[anchor] = nil }
        let built: Built
        switch event.content {
        case .alias(let name): return try alias(name, event, depth: depth)
        case .sequenceStart: built = try sequence(event, depth: depth)
        case .mappingStart: built = try mapping(event, depth: depth)
        case .scalar(let scalar):
            let isVerbatim = scalar.isPlain && event.line == event.endLine
            let text = try variables.expand(scalar, at: location(of: event), isVerbatim: isVerbatim, into: &diagnostics)
            built = Built(node: ConfigurationNode(.scalar(text), at: location(of: event)))
        default: throw syntaxError(event, "a value is missing")
        }
        if let anchor = event.anchor {
            anchors[anchor] = Anchored(node: built.node, count: built.count, height: built.height)
        }
        return built
    }

    private mutating func alias(_ name: String, _ event: YAMLEvent, depth: Int) throws(ConfigurationError) -> Built {
        guard let anchored = anchors[name] else { throw syntaxError(event, "unknown alias \(quoted("*" + name))") }
        aliasedNodes += anchored.count
        guard aliasedNodes <= maximumAliasedNodes, depth + anchored.height - 1 <= Limit.depth else {
            throw ConfigurationError(
                .configTooLarge, at: location(of: event), "aliases expand to too many nodes")
        }
        return Built(node: anchored.node, count: anchored.count, height: anchored.height)
    }

    private mutating func sequence(_ start: YAMLEvent, depth: Int) throws(ConfigurationError) -> Built {
        var elements: [ConfigurationNode] = []
        var (count, height) = (1, 0)
        while true {
            let event = try next()
            if case .collectionEnd = event.content { break }
            let element = try build(event, depth: depth + 1)
            elements.append(element.node)
            count += element.count
            height = max(height, element.height)
        }
        return Built(
            node: ConfigurationNode(.sequence(elements), at: location(of: start)), count: count, height: height + 1)
    }

    private mutating func mapping(_ start: YAMLEvent, depth: Int) throws(ConfigurationError) -> Built {
        var entries: [ConfigurationNode.Entry] = []
        var seen: [String: SourceLocation] = [:]
        var (count, height) = (1, 0)
        while true {
            let event = try next()
            if case .collectionEnd = event.content { break }
            let key = try key(event)
            let valueEvent = try next()
            let value = try build(valueEvent, depth: depth + 1)
            count += value.count
            height = max(height, value.height)
            if let first = seen[key.value] {
                diagnostics.error(
                    .configDuplicateKey, at: key.location,
                    "duplicate key \(quoted(key.value)): first used on line \(first.line)")
                continue
            }
            seen[key.value] = key.location
            entries.append(ConfigurationNode.Entry(key: key, value: value.node))
        }
        return Built(
            node: ConfigurationNode(.mapping(entries), at: location(of: start)), count: count, height: height + 1)
    }

    private func key(_ event: YAMLEvent) throws(ConfigurationError) -> Located<String> {
        guard case .scalar(let scalar) = event.content else {
            throw syntaxError(event, "a key must be a string, not a list, a block or an alias")
        }
        guard !event.hasTag, event.anchor == nil else {
            throw syntaxError(event, "a key cannot have a tag or an anchor")
        }
        guard !scalar.text.isEmpty else { throw syntaxError(event, "a key is missing before ':'") }
        guard scalar.text != "<<" else {
            throw syntaxError(
                event, "merge keys '<<' are not supported: repeat the keys, or use an alias for a whole value")
        }
        return Located(scalar.text, at: location(of: event))
    }

    private mutating func next() throws(ConfigurationError) -> YAMLEvent {
        do { return try parser.next() } catch { throw Self.syntaxError(error, file) }
    }

    private func location(of event: YAMLEvent) -> SourceLocation {
        SourceLocation(file: file, line: event.line, column: event.column)
    }

    private func syntaxError(_ event: YAMLEvent, _ text: String) -> ConfigurationError {
        ConfigurationError(.configYAMLSyntax, at: location(of: event), text)
    }

    private static func syntaxError(_ error: YAMLError, _ file: String) -> ConfigurationError {
        ConfigurationError(
            .configYAMLSyntax, at: SourceLocation(file: file, line: error.line, column: error.column),
            error.reason)
    }
}
