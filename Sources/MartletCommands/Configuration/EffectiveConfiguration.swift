internal import MartletConfig
internal import MartletJSON

/// A configuration with every default, as `martlet config show` prints it, without its secrets.
///
/// What is secret is decided in favor of secrecy: every key that may also be given as `<key>_file`, the user
/// information and parameters of URLs, text that comes from the environment (its reference is shown instead), and
/// whatever has no grammar.
struct EffectiveConfiguration {
    indirect enum Value: Equatable {
        /// Without quotes in the file, if it can be: perhaps a number or a boolean.
        case plain(String)
        case quoted(String)
        /// Variables that stand for a value that is not shown: `${TOKEN}`.
        case reference(String)
        case list([Value])
        case map([Member])
    }

    struct Member: Equatable {
        let key: String
        let value: Value
    }

    /// What stands for a secret.
    static let redaction = "REDACTED"

    /// The keys of each kind of provider; a kind without any is not here.
    let kinds: [String: ConfigurationGrammar]
    private(set) var redactedCount = 0

    /// The whole configuration.
    ///
    /// - Parameters:
    ///   - root: the file, with its variables replaced.
    ///   - source: the same, with each variable as it is written.
    mutating func document(_ root: ConfigurationNode, source: ConfigurationNode) -> [Member] {
        members(GatewayConfiguration.grammar, root, source)
    }

    /// The members of a block in the order of the grammar, then what the grammar does not have.
    private mutating func members(
        _ grammar: ConfigurationGrammar, _ node: ConfigurationNode, _ source: ConfigurationNode
    ) -> [Member] {
        var result: [Member] = []
        for key in grammar.keys {
            if let value = node[key.name] {
                let written = source[key.name] ?? value
                result.append(
                    Member(
                        key: key.name,
                        value: grammar.isSecret(key.name)
                            ? secret(value, key.name) : shown(value, written, as: key.shape)))
            } else if let fallback = key.fallback, !grammar.excludes(key.name, in: node),
                let value = ConfigurationNode(defaultText: fallback)
            {
                result.append(Member(key: key.name, value: shown(value, value, as: key.shape)))
            }
        }
        let others = (node.entries ?? []).filter { !grammar.keyNames.contains($0.key.value) }
        return result + others.map { Member(key: $0.key.value, value: hidden($0.value)) }
    }

    private mutating func shown(
        _ node: ConfigurationNode, _ source: ConfigurationNode, as shape: ConfigurationGrammar.Shape
    ) -> Value {
        switch (node.content, shape) {
        case (_, .either(let shapes)):
            let fitting = shapes.first { $0.fits(node) } ?? shapes.first ?? .text
            return shown(node, source, as: fitting)
        case (.scalar(let scalar), _): return text(scalar, source, as: shape)
        case (.sequence(let elements), .list(let element, _)):
            let written = source.elements ?? []
            return .list(
                elements.enumerated().map { index, value in
                    shown(value, index < written.count ? written[index] : value, as: element)
                })
        case (.mapping, .block(let grammar)): return .map(members(grammar, node, source))
        case (.mapping(let entries), .map(let element)):
            return .map(
                entries.map { entry in
                    let written = source[entry.key.value] ?? entry.value
                    return Member(key: entry.key.value, value: shown(entry.value, written, as: element))
                })
        case (.mapping, .provider): return .map(provider(node, source))
        case (.mapping, .authorize), (.mapping, .condition): return condition(node, source)
        default: return hidden(node)
        }
    }

    private mutating func provider(_ node: ConfigurationNode, _ source: ConfigurationNode) -> [Member] {
        guard case .scalar(let kind)? = node["kind"]?.content else { return [] }
        let own = kinds[kind.text] ?? ConfigurationGrammar()
        let key = ConfigurationGrammar.Key.required("kind", .constant(kind.text), "")
        let grammar = ConfigurationGrammar([key] + own.keys + ProviderConfiguration.sharedKeys(besides: own))
            .withGroups(of: own)
        return members(grammar, node, source)
    }

    /// A condition has no defaults and no secrets.
    private mutating func condition(_ node: ConfigurationNode, _ source: ConfigurationNode) -> Value {
        switch node.content {
        case .scalar(let scalar): return text(scalar, source, as: .text)
        case .sequence(let elements):
            let written = source.elements ?? []
            return .list(
                elements.enumerated().map { index, value in
                    condition(value, index < written.count ? written[index] : value)
                })
        case .mapping(let entries):
            return .map(
                entries.map { Member(key: $0.key.value, value: condition($0.value, source[$0.key.value] ?? $0.value)) })
        }
    }

    // MARK: Scalars

    /// A value that is not secret as such; text from the environment might be, if any text is allowed.
    private mutating func text(
        _ scalar: ConfigurationNode.Scalar, _ source: ConfigurationNode, as shape: ConfigurationGrammar.Shape
    ) -> Value {
        if let url = RedactedURL(scalar.text, isFromVariable: scalar.hadVariable) {
            if url.isRedacted { redactedCount += 1 }
            return scalar.isPlain ? .plain(url.text) : .quoted(url.text)
        }
        guard scalar.hadVariable, !shape.limitsText else {
            // A number or a duration needs no quotation marks, which a variable has in the file.
            let isWord =
                scalar.hadVariable && !scalar.text.isEmpty
                && scalar.text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x7A).contains($0 | 0x20) }
            return scalar.isPlain || isWord ? .plain(scalar.text) : .quoted(scalar.text)
        }
        redactedCount += 1
        guard case .scalar(let written) = source.content else { return .plain(Self.redaction) }
        return .reference(written.text)
    }

    private mutating func secret(_ node: ConfigurationNode, _ key: String) -> Value {
        if key.hasSuffix("url"), case .scalar(let scalar) = node.content,
            let url = RedactedURL(scalar.text, isFromVariable: scalar.hadVariable)
        {
            if url.isRedacted { redactedCount += 1 }
            return scalar.isPlain ? .plain(url.text) : .quoted(url.text)
        }
        return hidden(node)
    }

    /// The same structure without any text.
    private mutating func hidden(_ node: ConfigurationNode) -> Value {
        switch node.content {
        case .scalar:
            redactedCount += 1
            return .plain(Self.redaction)
        case .sequence(let elements): return .list(elements.map { hidden($0) })
        case .mapping(let entries):
            return .map(entries.map { Member(key: $0.key.value, value: hidden($0.value)) })
        }
    }
}

extension ConfigurationGrammar {
    /// Whether a key may also be given as `<key>_file`, because it is a secret.
    fileprivate func isSecret(_ name: String) -> Bool {
        (oneOf + exclusive).contains([name, "\(name)_file"])
    }

    /// Whether the block has a key that the default of another one would contradict.
    fileprivate func excludes(_ name: String, in node: ConfigurationNode) -> Bool {
        (oneOf + exclusive).contains { group in
            group.contains(name) && group.contains { $0 != name && node[$0] != nil }
        }
    }

    fileprivate func withGroups(of other: ConfigurationGrammar) -> ConfigurationGrammar {
        (other.oneOf + other.exclusive).reduce(self) { $0.withOneOf($1) }
    }
}

extension ConfigurationGrammar.Shape {
    /// Whether a node could be a value of the shape, by its structure.
    fileprivate func fits(_ node: ConfigurationNode) -> Bool {
        switch (self, node.content) {
        case (.block, .mapping), (.map, .mapping), (.provider, .mapping), (.authorize, .mapping),
            (.condition, .mapping), (.list, .sequence):
            true
        case (.either(let shapes), _): shapes.contains { $0.fits(node) }
        case (.block, _), (.map, _), (.provider, _), (.authorize, _), (.condition, _), (.list, _): false
        case (_, .scalar): true
        default: false
        }
    }

    /// Whether a value can only be one of a few, or has a form that no secret has.
    fileprivate var limitsText: Bool {
        switch self {
        case .boolean, .integer, .number, .duration, .size, .path, .choice, .constant: true
        case .either(let shapes): shapes.allSatisfy(\.limitsText)
        default: false
        }
    }
}

/// A URL without the secrets that may be in it.
struct RedactedURL {
    private static let secretParameters = ["pass", "secret", "token", "key", "credential", "sig"]

    /// What is in this machine, and needs no credentials.
    private static let localSchemes = ["memory:", "sqlite:", "builtin:", "unix:"]

    private(set) var text: String
    private(set) var isRedacted = false

    /// - Parameter isFromVariable: whether a variable was in it: then the path of a web address, which may be a
    ///   capability, is secret, too.
    /// - Returns: `nil` for a text that is not a URL with an authority.
    init?(_ url: String, isFromVariable: Bool) {
        if Self.localSchemes.contains(where: url.hasPrefix), !url.contains("@"), !url.contains("?") {
            text = url
            return
        }
        guard let separator = url.firstRange(of: "://"), separator.lowerBound > url.startIndex else { return nil }
        let scheme = url[..<separator.lowerBound]
        guard scheme.utf8.allSatisfy({ (0x61...0x7A).contains($0 | 0x20) || $0 == 0x2B || $0 == 0x2D }) else {
            return nil
        }
        text = ""
        let rest = url[separator.upperBound...]
        var authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
        var tail = rest[authority.endIndex...]
        // A password may have any of these characters: the user information ends at the last one.
        if let at = rest.prefix(while: { $0 != "?" }).lastIndex(of: "@"), at >= authority.endIndex {
            let host = rest[rest.index(after: at)...].prefix { $0 != "/" && $0 != "?" && $0 != "#" }
            authority = rest[..<host.endIndex]
            tail = rest[authority.endIndex...]
        }
        let shownAuthority = redacted(authority: authority)
        let path = tail.prefix { $0 != "?" && $0 != "#" }
        let isHidden = isFromVariable && scheme.lowercased().hasPrefix("http") && path.count > 1
        if isHidden { isRedacted = true }
        let shownPath = isHidden ? "/" + EffectiveConfiguration.redaction : String(path)
        text = "\(scheme)://\(shownAuthority)\(shownPath)" + redacted(query: tail[path.endIndex...])
    }

    private mutating func redacted(authority: Substring) -> String {
        guard let at = authority.lastIndex(of: "@") else { return String(authority) }
        let user = authority[..<at].prefix { $0 != ":" }
        isRedacted = true
        let hasPassword = user.endIndex < at
        let shown = hasPassword ? "\(user):\(EffectiveConfiguration.redaction)" : EffectiveConfiguration.redaction
        return shown + authority[at...]
    }

    private mutating func redacted(query: Substring) -> String {
        guard query.hasPrefix("?") else { return String(query) }
        var parameters: [String] = []
        for parameter in query.dropFirst().split(separator: "&", omittingEmptySubsequences: false) {
            let name = parameter.prefix { $0 != "=" }
            let lower = name.lowercased()
            let isFile = lower.hasSuffix("file") || lower == "sslkey"
            if !isFile, Self.secretParameters.contains(where: lower.contains) {
                isRedacted = true
                parameters.append("\(name)=\(EffectiveConfiguration.redaction)")
            } else {
                parameters.append(String(parameter))
            }
        }
        return "?" + parameters.joined(separator: "&")
    }
}
