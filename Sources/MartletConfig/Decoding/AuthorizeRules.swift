private import MartletCore
internal import MartletJSON

/// `authorize:` of a route: its conditions on claims, and those on the authentication.
struct AuthorizeRules {
    var conditions: [ConditionConfiguration] = []
    /// The index of each condition in the list.
    var indices: [Int] = []
    var authentication = AuthenticationRequirement()

    var isEmpty: Bool { conditions.isEmpty && authentication.isEmpty }

    /// Reads `authorize:` and records errors. The shortest of several ages applies; there can be one level.
    static func read(_ reader: inout ConfigurationReader) -> AuthorizeRules {
        var rules = AuthorizeRules()
        for (index, entry) in reader.blocks("authorize", as: AuthorizeEntry.self).enumerated() {
            switch entry.value {
            case .condition(let condition):
                rules.conditions.append(condition)
                rules.indices.append(index)
            case .maximumAge(let age):
                guard age < rules.authentication.maximumAge?.value ?? .seconds(Int64.max) else { continue }
                rules.authentication.maximumAge = .init(value: age, index: index)
            case .level(let level):
                if rules.authentication.level != nil {
                    reader.error(
                        .configConflictingKeys, at: level.location,
                        "authorize: has two 'acr' conditions, of which only one can hold")
                }
                rules.authentication.level = .init(value: level.value, index: index)
            }
        }
        return rules
    }
}

/// One entry of `authorize:`.
private enum AuthorizeEntry: ConfigurationDecodable {
    case condition(ConditionConfiguration)
    case maximumAge(Duration)
    case level(Located<String>)

    /// The keys of conditions on the authentication.
    private static let authenticationKeys = ["max_age", "acr"]
    private static let ages: ClosedRange<Duration> = .seconds(1) ... .seconds(3650 * 86_400)
    private static let maximumLevelBytes = 128

    static var grammar: ConfigurationGrammar? { ConditionConfiguration.entryGrammar }

    init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        guard let key = Self.authenticationKeys.first(where: { reader.has($0) }) else {
            self = .condition(try ConditionConfiguration(from: &reader))
            return
        }
        self =
            key == "max_age"
            ? .maximumAge(try reader.required(key, in: Self.ages)) : .level(try Self.level(key, &reader))
        if let other = reader.keys.first(where: { $0.value != key && reader.isKnown($0.value) }) {
            throw ConfigurationError(
                .configConflictingKeys, at: other.location,
                "'\(key)' must be the only key of its condition: remove '\(other.value)'")
        }
    }

    /// A level that a challenge can name (RFC 9470 §3).
    private static func level(
        _ key: String, _ reader: inout ConfigurationReader
    ) throws(ConfigurationError) -> Located<String> {
        let level: Located<String> = try reader.required(key)
        let isValid = level.value.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != 0x22 && $0 != 0x5C }
        guard isValid, (1...maximumLevelBytes).contains(level.value.utf8.count) else {
            throw ConfigurationError(
                .configBadValue, at: level.location,
                "\(key): must be 1 to \(maximumLevelBytes) visible ASCII characters without quotes and backslashes")
        }
        return level
    }
}

extension ConditionConfiguration: ConfigurationDecodable {
    static let tests = ["equals", "in", "contains", "matches", "exists", "gt", "lt"]

    package static var grammar: ConfigurationGrammar? {
        .init([
            .optional("claim", .claim, "The claim that is tested, or the names on the way to a member of it."),
            .optional("equals", .literal, "The claim equals this."),
            .optional("in", .list(.literal, nonEmpty: true), "The claim is one of these."),
            .optional(
                "contains", .literal, "The claim is a list with this element, or a string that contains this string."),
            .optional("matches", .text, "The claim is a string that the whole regular expression matches."),
            .optional("exists", .boolean, "Whether the claim is present."),
            .optional("gt", .number, "The claim is a number greater than this."),
            .optional("lt", .number, "The claim is a number less than this."),
            .optional("not", .boolean, default: "false", "Inverts the test."),
            .optional("or_absent", .boolean, default: "false", "Whether callers without the claim pass, too."),
            .optional(
                "any", .list(.condition, nonEmpty: true),
                "Conditions of which at least one must hold; the only key of its condition."),
        ])
    }

    /// The grammar of an entry of the outermost list, which also allows conditions on the authentication.
    static var entryGrammar: ConfigurationGrammar? {
        .init(
            (grammar?.keys ?? []) + [
                .optional(
                    "max_age", .duration,
                    "The maximum time since the user authenticated; the only key of its condition."),
                .optional("acr", .text, "The level of the authentication; the only key of its condition."),
            ])
    }

    package init(from reader: inout ConfigurationReader) throws(ConfigurationError) {
        if reader.has("any") {
            self = try Self.alternatives(&reader)
            return
        }
        let inverted = reader.optional("not", default: false)
        let given = reader.keys.filter { Self.tests.contains($0.value) }
        let orAbsent = reader.optional("or_absent", default: false)
        let claim = reader.expected("claim", as: ClaimPath.self)
        guard let key = given.first, given.count == 1 else {
            let location = given.dropFirst().first?.location ?? reader.location
            throw ConfigurationError(
                given.isEmpty ? .configMissingKey : .configConflictingKeys, at: location,
                "\(reader.title) must have exactly one of \(Self.tests.joined(separator: ", "))")
        }
        guard let test = Self.test(key.value, &reader), let claim else { throw .alreadyReported }
        if orAbsent, case .exists = test, let node = reader.node("or_absent") {
            throw node.error(.configConflictingKeys, "or_absent: has no meaning with 'exists'")
        }
        self = .claim(name: claim, test: test, inverted: inverted, orAbsent: orAbsent)
    }

    private static func alternatives(
        _ reader: inout ConfigurationReader
    ) throws(ConfigurationError) -> ConditionConfiguration {
        let conditions = reader.blocks("any", as: ConditionConfiguration.self).map(\.value)
        if let other = reader.keys.first(where: { $0.value != "any" && reader.isKnown($0.value) }) {
            let hint = other.value == "not" ? "; list the conditions separately, each with 'not: true'" : ""
            throw ConfigurationError(
                .configConflictingKeys, at: other.location,
                "'any' must be the only key of its condition: remove '\(other.value)'\(hint)")
        }
        if let node = reader.node("any"), node.elements?.isEmpty == true {
            throw node.error(.configBadValue, "any: must not be empty")
        }
        return .any(conditions)
    }

    private static func test(_ key: String, _ reader: inout ConfigurationReader) -> Test? {
        switch key {
        case "equals": reader.expected(key, as: ClaimLiteral.self).map { .equals($0) }
        case "in": reader.expected(key, as: NonEmpty<ClaimLiteral>.self).map { .isIn($0.elements) }
        case "contains": reader.expected(key, as: ClaimLiteral.self).map { .contains($0) }
        case "matches": reader.expected(key, as: Located<String>.self).map { .matches($0) }
        case "exists": reader.expected(key, as: Bool.self).map { .exists($0) }
        case "gt": reader.expected(key, as: Number.self).map { .greaterThan($0.value) }
        default: reader.expected(key, as: Number.self).map { .lessThan($0.value) }
        }
    }
}

extension ClaimLiteral: ConfigurationValue {
    /// A boolean, a number or a string; a quoted value is always a string.
    package init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let text = try node.text()
        guard case .scalar(let scalar) = node.content, scalar.isPlain else {
            self = .text(text)
            return
        }
        switch text {
        case "true": self = .bool(true)
        case "false": self = .bool(false)
        default: self = try Number.parse(text, node).map { .number($0) } ?? .text(text)
        }
    }
}

/// A number in JSON syntax.
private struct Number: ConfigurationValue {
    let value: Double

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let text = try node.plainText(expecting: "a number")
        guard let value = try Self.parse(text, node) else {
            throw node.error(.configWrongType, "must be a number, not \(quoted(text))")
        }
        self.value = value
    }

    /// - Returns: `nil` for a text that is not a JSON number, such as `007`, `0x1F`, `1_000` or `inf`.
    static func parse(_ text: String, _ node: ConfigurationNode) throws(ConfigurationError) -> Double? {
        var rest = Array(text.utf8)[...]
        if rest.first == 0x2D { rest = rest.dropFirst() }
        let digits = rest.prefix { (0x30...0x39).contains($0) }
        let hasLeadingZero = digits.count > 1 && digits.first == 0x30
        let isNumber =
            !digits.isEmpty && !hasLeadingZero
            && rest.allSatisfy { (0x30...0x39).contains($0) || "+-.eE".utf8.contains($0) } && text.utf8.last != 0x2E
        guard isNumber, let value = Double(text) else { return nil }
        guard value.magnitude <= 9_007_199_254_740_992 else {
            throw node.error(
                .configBadValue, "\(quoted(text)) is too large to compare exactly: quote it to compare it as a string")
        }
        return value
    }
}
