private import MartletCore
public import MartletJSON

extension ClaimPath: ConfigurationValue, Spelling {
    static var shape: ConfigurationGrammar.Shape { .claim }
    private static let maximumDepth = 8
    private static let maximumNameBytes = 255

    /// A name, or a list of names.
    public init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        guard let elements = node.elements else {
            self = ClaimPath(try Self.name(node))
            return
        }
        var names: [String] = []
        for element in elements { names.append(try Self.name(element)) }
        guard let path = Self(names), names.count <= Self.maximumDepth else {
            throw node.error(
                .configBadValue,
                "must be the name of a claim, or a list of 1 to \(Self.maximumDepth) names: [realm_access, roles]")
        }
        self = path
    }

    private static func name(_ node: ConfigurationNode) throws(ConfigurationError) -> String {
        let name = try node.text()
        guard (1...maximumNameBytes).contains(name.utf8.count) else {
            throw node.error(
                .configBadValue, "must not be empty, nor longer than \(maximumNameBytes) bytes: the name of a claim")
        }
        return name
    }
}

extension ConfigurationGrammar.Shape {
    /// The name of a claim, or a list of names.
    public static let claim = Self.either([.text, .list(.text, nonEmpty: true)])
}
