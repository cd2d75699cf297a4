internal import MartletConfig
private import MartletCore
internal import MartletJSON

/// One entry of `rename`.
struct ClaimRename: Sendable {
    let from: ClaimPath
    let to: String
    /// Whether a preset has it: a claim that already has the name keeps it.
    var isDefault = false

    /// `rename`: a block of claims and their new names, or a list of entries whose claims may be members of others.
    /// - Returns: `nil` if the key is absent; errors are recorded.
    static func read(_ reader: inout ConfigurationReader) -> [ClaimRename]? {
        guard let node = reader.node("rename") else { return nil }
        guard node.elements != nil else { return reader.optional("rename", as: Renames.self)?.renames }
        var renames: [ClaimRename] = []
        for entry in reader.blocks("rename", as: RenameBlock.self).map(\.value) {
            do {
                try Renames.check(entry.name.value, among: renames, at: entry.name.location)
                renames.append(ClaimRename(from: entry.claim, to: entry.name.value))
            } catch { reader.diagnostics.add(error) }
        }
        return renames
    }

    static let shape = ConfigurationGrammar.Shape.either([
        .map(.text), .list(.block(of: RenameBlock.self), nonEmpty: true),
    ])
}

/// An entry of `rename` that is a list.
private struct RenameBlock: ConfigurationDecodable {
    let claim: ClaimPath
    let name: Located<String>

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        claim = try reader.required("claim")
        name = try reader.required("as")
    }

    static var grammar: ConfigurationGrammar? {
        ConfigurationGrammar([
            .required("claim", .claim, "The claim in the token, or the names on the way to a member of it."),
            .required("as", .text, "Its name in rules and headers."),
        ])
    }
}

/// `rename` as a block: new names of claims, for rules and headers.
private struct Renames: ConfigurationValue {
    /// Claims that mean what the token says: nothing else may take their names.
    private static let fixed = ["iss", "sub", "aud", "exp", "iat", "nbf", "azp", "cnf"]
    private static let maximumNameBytes = 255

    let renames: [ClaimRename]

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        guard let entries = node.entries else {
            throw node.error(.configWrongType, "must be a block of claims and their new names, or a list of entries")
        }
        var renames: [ClaimRename] = []
        for entry in entries {
            let name = try entry.value.text()
            guard !entry.key.value.isEmpty else {
                throw entry.value.error(.configBadValue, "the name of a claim must not be empty")
            }
            try Self.check(name, among: renames, at: entry.value.location)
            renames.append(ClaimRename(from: ClaimPath(entry.key.value), to: name))
        }
        self.renames = renames
    }

    /// Whether a claim can have this name, too.
    static func check(
        _ name: String, among renames: [ClaimRename], at location: SourceLocation
    ) throws(ConfigurationError) {
        guard (1...maximumNameBytes).contains(name.utf8.count) else {
            throw ConfigurationError(
                .configBadValue, at: location, "a name of a claim has 1 to \(maximumNameBytes) bytes")
        }
        guard !fixed.contains(where: { name.hasSameBytes(as: $0) }) else {
            throw ConfigurationError(.configBadValue, at: location, "no other claim can be named '\(name)'")
        }
        guard !renames.contains(where: { $0.to.hasSameBytes(as: name) }) else {
            throw ConfigurationError(.configDuplicateName, at: location, "two claims cannot both be named '\(name)'")
        }
    }
}
