internal import MartletCore

/// One key of a block, with the property that it sets: the only place where the key stands.
///
/// From it come its rows of the grammar, with the default that the property has in a block without keys, and what
/// reads it.
struct ConfigurationKey<Root>: Sendable {
    typealias Path<Value> = any WritableKeyPath<Root, Value> & Sendable
    typealias Shape = ConfigurationGrammar.Shape
    typealias Read = @Sendable (inout Root, inout ConfigurationReader) throws(ConfigurationError) -> Void

    /// The default in the grammar: the property's value, another text, or none.
    enum Default {
        case property
        case text(String)
        case none
    }

    /// When a key is read: all optional ones, so that their errors are reported together, then those whose error ends
    /// the block, then what concerns several keys.
    enum Phase { case optional, ending, check }

    /// Adds its rows to a grammar, with the defaults of a block.
    var describe: @Sendable (inout ConfigurationGrammar, Root) -> Void = { _, _ in }
    var phase = Phase.optional
    /// Of the key in ``ConfigurationReader/marks``: without it there is nothing to read.
    var mark = UInt64.max
    /// Sets the property if the key is there; throws only for what is required.
    var read: Read = { _, _ in }
}

/// A block whose keys set properties: their table is its grammar, and reads it.
protocol KeyedBlock: ConfigurationDecodable {
    static var keys: [ConfigurationKey<Self>] { get }
    /// A block with every default. What is required has a placeholder, which no block has that was read.
    init()
    /// A block with every default, where those that have a position are at that of the block.
    init(at location: SourceLocation)
}

extension KeyedBlock {
    package static var grammar: ConfigurationGrammar? { table }

    /// The grammar of its keys.
    static var table: ConfigurationGrammar { ConfigurationGrammar(keys, of: Self()) }

    init(at location: SourceLocation) { self.init() }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        self.init(at: reader.location)
        try reader.read(Self.keys, into: &self)
    }
}

extension ConfigurationGrammar {
    /// The rows of a table, with the defaults of a block.
    init<Root>(_ keys: [ConfigurationKey<Root>], of defaults: Root) {
        self.init()
        for key in keys { key.describe(&self, defaults) }
    }
}

extension ConfigurationReader {
    /// Reads the keys of a table.
    /// - Throws: the error of a required key; those of others are recorded.
    mutating func read<Root>(_ keys: [ConfigurationKey<Root>], into root: inout Root) throws(ConfigurationError) {
        var isComplete = true
        for key in keys where key.phase == .optional && marks & key.mark != 0 {
            do { try key.read(&root, &self) } catch {
                diagnostics.add(error)
                isComplete = false
            }
        }
        for key in keys where key.phase == .ending { try key.read(&root, &self) }
        guard isComplete else { throw .alreadyReported }
        for key in keys where key.phase == .check { try key.read(&root, &self) }
    }

    /// Reads a block into properties of the one around it; errors are recorded.
    mutating func nested<Root>(_ key: String, _ keys: [ConfigurationKey<Root>], into root: inout Root) {
        guard let node = node(key) else { return }
        do throws(ConfigurationError) {
            let defaults = root
            var inner = try ConfigurationReader(node, title: title(of: key)) {
                ConfigurationGrammar(keys, of: defaults)
            }
            do throws(ConfigurationError) { try inner.read(keys, into: &root) } catch { inner.diagnostics.add(error) }
            inner.finish()
            diagnostics.add(inner.diagnostics)
        } catch {
            diagnostics.add(error)
        }
    }
}

extension ConfigurationKey {
    /// A row of the grammar.
    private static func row(
        _ name: String, _ shape: @autoclosure @escaping @Sendable () -> Shape, isRequired: Bool = false,
        _ summary: String, phase: Phase = .optional, default text: @escaping @Sendable (Root) -> String? = { _ in nil },
        read: @escaping Read
    ) -> Self {
        Self(
            describe: { grammar, root in
                grammar.keys.append(
                    .init(
                        name: name, shape: shape(), fallback: text(root), isRequired: isRequired, summary: summary))
            }, phase: phase, mark: isRequired ? .max : ConfigurationReader.mark(of: name), read: read)
    }

    /// A row of the grammar whose value is read in a way of its own.
    static func row(
        _ row: ConfigurationGrammar.Key, endsBlock: Bool = false, read: @escaping Read = { _, _ in }
    ) -> Self {
        Self(describe: { grammar, _ in grammar.keys.append(row) }, phase: endsBlock ? .ending : .optional, read: read)
    }

    /// Keys of which the block has exactly one, which is read if those above are right.
    static func one<Value>(of alternatives: [ConfigurationAlternative<Value>], _ path: Path<Value>) -> Self {
        Self {
            grammar, _ in
            grammar = grammar.adding(alternatives.map(\.row)).withOneOf(alternatives.map(\.row.name))
        } read: { root, reader throws(ConfigurationError) in
            let only = try reader.one(of: alternatives)
            guard !reader.diagnostics.hasErrors, let value = only.read(&reader) else { throw .alreadyReported }
            root[keyPath: path] = value
        }
    }

    /// What several keys together do not allow, and what depends on others.
    /// - Parameter always: whether it is looked for even without a required key; only keys above were read then.
    static func check(always: Bool = false, _ body: @escaping Read) -> Self {
        Self(phase: always ? .optional : .check, read: body)
    }

    /// A key whose content is a property's.
    /// - Parameters:
    ///   - shape: where that of the type says too little.
    ///   - rule: what a text has to be, beyond its type.
    static func key<Value: Spelling>(
        _ name: String, _ path: Path<Value.Content>, as type: Value.Type, shape: Shape = Value.shape,
        where rule: TextRule? = nil, default text: Default = .property, _ summary: String
    ) -> Self {
        key(name, path, shape, text, summary) { node throws(ConfigurationError) in try Value(decoding: node, rule) }
    }

    /// A key whose value is a property's.
    static func key<Value: Spelling>(
        _ name: String, _ path: Path<Value>, shape: Shape = Value.shape, where rule: TextRule? = nil,
        default text: Default = .property, _ summary: String
    ) -> Self where Value.Content == Value {
        key(name, path, as: Value.self, shape: shape, where: rule, default: text, summary)
    }

    /// A key whose content, within bounds, is a property's.
    static func key<Value: ConfigurationQuantity & Spelling>(
        _ name: String, _ path: Path<Value.Content>, as type: Value.Type, in range: ClosedRange<Value>,
        _ summary: String
    ) -> Self {
        key(name, path, Value.shape(of: range), .property, summary) { node throws(ConfigurationError) in
            try Value(decoding: node, in: range)
        }
    }

    /// A key whose value, within bounds, is a property's.
    static func key<Value: ConfigurationQuantity & Spelling>(
        _ name: String, _ path: Path<Value>, in range: ClosedRange<Value>, _ summary: String
    ) -> Self where Value.Content == Value {
        key(name, path, as: Value.self, in: range, summary)
    }

    /// A key without a default whose value is within bounds.
    static func key<Value: ConfigurationQuantity & Spelling>(
        _ name: String, _ path: Path<Value?>, in range: ClosedRange<Value>, default text: Default = .property,
        _ summary: String
    ) -> Self where Value.Content == Value {
        key(name, path, Value.shape(of: range), text, summary) { node throws(ConfigurationError) in
            Optional(try Value(decoding: node, in: range))
        }
    }

    private static func key<Value: Spelling>(
        _ name: String, _ path: Path<Value.Content>, _ shape: Shape, _ text: Default, _ summary: String,
        _ decode: @escaping @Sendable (ConfigurationNode) throws(ConfigurationError) -> Value
    ) -> Self {
        row(name, shape, summary) { root in
            switch text {
            case .property: Value.text(of: root[keyPath: path])
            case .text(let text): text
            case .none: nil
            }
        } read: { root, reader in
            if let value = reader.value(name, decode) { root[keyPath: path] = value.content }
        }
    }

    /// A required key.
    /// - Parameter endsBlock: whether its error ends the block, so that no further one is reported.
    static func required<Value: Spelling>(
        _ name: String, _ path: Path<Value.Content>, as type: Value.Type, shape: Shape = Value.shape,
        where rule: TextRule? = nil, endsBlock: Bool = false, _ summary: String
    ) -> Self {
        row(name, shape, isRequired: true, summary, phase: endsBlock ? .ending : .optional) {
            root, reader throws(ConfigurationError) in
            let node = try reader.requiredNode(name)
            let value = reader.recorded(name) { () throws(ConfigurationError) in try Value(decoding: node, rule) }
            guard let value else { throw .alreadyReported }
            root[keyPath: path] = value.content
        }
    }

    /// A required key whose value is a property's.
    static func required<Value: Spelling>(
        _ name: String, _ path: Path<Value>, shape: Shape = Value.shape, where rule: TextRule? = nil,
        endsBlock: Bool = false, _ summary: String
    ) -> Self where Value.Content == Value {
        required(name, path, as: Value.self, shape: shape, where: rule, endsBlock: endsBlock, summary)
    }
}

/// Blocks, and files.
extension ConfigurationKey {
    /// A block that is in effect where it is absent.
    static func block<Block: ConfigurationDecodable>(
        _ name: String, _ path: Path<Block>, default text: String? = "{}", _ summary: String
    ) -> Self {
        row(
            name, .block(of: Block.self), summary, default: { _ in text },
            read: { root, reader in
                if let block = reader.block(name, as: Block.self) { root[keyPath: path] = block }
            })
    }

    /// A block from which several properties are set.
    static func block<Block: ConfigurationDecodable>(
        _ name: String, as type: Block.Type, _ summary: String, set: @escaping @Sendable (inout Root, Block) -> Void
    ) -> Self {
        row(name, .block(of: Block.self), summary) { root, reader in
            if let block = reader.block(name, as: Block.self) { set(&root, block) }
        }
    }

    /// A block that may be absent.
    static func block<Block: ConfigurationDecodable>(_ name: String, _ path: Path<Block?>, _ summary: String) -> Self {
        row(name, .block(of: Block.self), summary) { $0[keyPath: path] = $1.block(name) }
    }

    /// A block with its position that may be absent.
    static func block<Block: ConfigurationDecodable>(
        _ name: String, _ path: Path<Located<Block>?>, _ summary: String
    ) -> Self {
        row(name, .block(of: Block.self), summary) { root, reader in
            guard let node = reader.node(name) else { return }
            root[keyPath: path] = reader.block(name).map { Located($0, at: node.location) }
        }
    }

    /// A block whose keys set properties of this one.
    static func block(_ name: String, _ summary: String, _ keys: [Self]) -> Self {
        Self {
            $0.keys.append(.optional(name, .block(ConfigurationGrammar(keys, of: $1)), summary))
        } read: {
            $1.nested(name, keys, into: &$0)
        }
    }

    /// A list of blocks.
    /// - Parameter nonEmpty: whether a list without any is an error.
    static func blocks<Block: ConfigurationDecodable>(
        _ name: String, _ path: Path<[Block]>, nonEmpty: Bool = false, default text: String? = "[]", _ summary: String
    ) -> Self {
        row(
            name, .list(.block(of: Block.self), nonEmpty: nonEmpty), summary, default: { _ in text },
            read: { root, reader in
                guard reader.has(name) else { return }
                if nonEmpty { reader.checkNotEmpty(name) }
                root[keyPath: path] = reader.blocks(name).map(\.value)
            })
    }

    /// A secret, here or in a file.
    static func secret(_ name: String, _ path: Path<Located<Secret>?>, _ summary: String) -> Self {
        Self(
            describe: { grammar, _ in grammar = grammar.withSecret(name, required: false, summary) },
            read: {
                $0[keyPath: path] = $1.optionalSecret(name)
            })
    }

    static func requiredSecret(_ name: String, _ path: Path<Located<Secret>>, _ summary: String) -> Self {
        Self(
            describe: { grammar, _ in grammar = grammar.withSecret(name, required: true, summary) }, phase: .ending,
            read: {
                root, reader throws(ConfigurationError) in root[keyPath: path] = try reader.secret(name)
            })
    }

    static func secretFiles(
        _ name: String, _ path: Path<[Located<Secret>]>, nonEmpty: Bool = false, default text: String? = nil,
        _ summary: String
    ) -> Self {
        row(
            name, .list(.path, nonEmpty: nonEmpty), summary, default: { _ in text },
            read: {
                $0[keyPath: path] = $1.secretFiles(name)
            })
    }

    /// `certificate_file` and `key_file`, both or neither.
    static func certificate(_ path: Path<CertificateFiles?>, _ certificate: String, _ key: String) -> Self {
        let rows: [ConfigurationGrammar.Key] = [
            .optional("certificate_file", .path, certificate), .optional("key_file", .path, key),
        ]
        return Self(
            describe: { grammar, _ in grammar.keys += rows }, read: { $0[keyPath: path] = $1.certificatePair() })
    }
}
