package import MartletJSON

/// One condition of `authorize:`.
@frozen package indirect enum ConditionConfiguration: Sendable {
    /// The test of a claim.
    @frozen package enum Test: Sendable {
        case equals(ClaimLiteral)
        case isIn([ClaimLiteral])
        case contains(ClaimLiteral)
        case matches(Located<String>)
        case exists(Bool)
        case greaterThan(Double)
        case lessThan(Double)
    }

    /// `orAbsent`: the condition holds where there is no such claim.
    case claim(name: ClaimPath, test: Test, inverted: Bool, orAbsent: Bool = false)
    case any([ConditionConfiguration])
}

extension ConditionConfiguration: ConfigurationDecodable {
    static let tests: [ConfigurationAlternative<Test>] = [
        .init("equals", as: ClaimLiteral.self, Test.equals, "The claim equals this."),
        .init("in", as: NonEmpty<ClaimLiteral>.self, Test.isIn, "The claim is one of these."),
        .init(
            "contains", as: ClaimLiteral.self, Test.contains,
            "The claim is a list with this element, or a string that contains this string."),
        .init(
            "matches", as: Located<String>.self, Test.matches,
            "The claim is a string that the whole regular expression matches."),
        .init("exists", as: Bool.self, Test.exists, "Whether the claim is present."),
        .init("gt", as: Number.self, Test.greaterThan, "The claim is a number greater than this."),
        .init("lt", as: Number.self, Test.lessThan, "The claim is a number less than this."),
    ]

    package static var grammar: ConfigurationGrammar? {
        .init(
            [.optional("claim", .claim, "The claim that is tested, or the names on the way to a member of it.")]
                + tests.map(\.row) + [
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
        let orAbsent = reader.optional("or_absent", default: false)
        let claim = reader.expected("claim", as: ClaimPath.self)
        guard let test = try reader.one(of: Self.tests).read(&reader), let claim else { throw .alreadyReported }
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
        reader.checkNotEmpty("any")
        return .any(conditions)
    }
}

/// A literal that a claim is compared with.
@frozen package enum ClaimLiteral: Sendable, Equatable {
    case bool(Bool)
    case number(Double)
    case text(String)
}

extension ClaimLiteral: ConfigurationValue, Spelling {
    static let shape = ConfigurationGrammar.Shape.literal

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
private struct Number: Spelling {
    static let shape = ConfigurationGrammar.Shape.number
    let content: Double

    init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let text = try node.plainText(expecting: "a number")
        guard let value = try Self.parse(text, node) else {
            throw node.error(.configWrongType, "must be a number, not \(quoted(text))")
        }
        content = value
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

extension RouteConfiguration {
    /// Reads `authorize:`: conditions on claims, and those on the authentication, of which the shortest age applies.
    mutating func readAuthorize(_ reader: inout ConfigurationReader) {
        for (index, entry) in reader.blocks("authorize", as: AuthorizeEntry.self).enumerated() {
            switch entry.value {
            case .condition(let condition):
                authorize.append(condition)
                authorizeIndices.append(index)
            case .maximumAge(let age):
                guard age < authenticationRequirement.maximumAge?.value ?? .seconds(Int64.max) else { continue }
                authenticationRequirement.maximumAge = .init(value: age, index: index)
            case .level(let level):
                if authenticationRequirement.level != nil {
                    reader.error(
                        .configConflictingKeys, at: level.location,
                        "authorize: has two 'acr' conditions, of which only one can hold")
                }
                authenticationRequirement.level = .init(value: level.value, index: index)
            }
        }
    }
}

/// `max_age` and `acr` in `authorize`: how recently, and at which level, the caller has to have authenticated.
@frozen package struct AuthenticationRequirement: Sendable, Equatable {
    /// A condition with its index in `authorize`, from 0.
    @frozen package struct Entry<Value: Sendable & Equatable>: Sendable, Equatable {
        package let value: Value
        package let index: Int

        package init(value: Value, index: Int) {
            self.value = value
            self.index = index
        }
    }

    package var maximumAge: Entry<Duration>?
    package var level: Entry<String>?

    package init(maximumAge: Entry<Duration>? = nil, level: Entry<String>? = nil) {
        self.maximumAge = maximumAge
        self.level = level
    }

    package var isEmpty: Bool { maximumAge == nil && level == nil }
}
