package import MartletJSON

/// The grammar of `config.yaml` as a JSON Schema (draft 2020-12), for editors and for checks before a file is shipped.
///
/// It is generated from the tables by which the reader detects unknown keys. What a schema cannot express (references,
/// addresses, patterns) is checked only by `martlet check`.
@frozen package enum ConfigurationSchema {
    /// The schema of a whole configuration file.
    ///
    /// - Parameter providers: the kinds of the available plugins; a kind without a grammar accepts any keys.
    package static func document(providers: [(kind: String, grammar: ConfigurationGrammar?)]) -> JSONValue {
        var members: [(String, JSONValue)] = [
            ("$schema", "https://json-schema.org/draft/2020-12/schema"),
            ("$id", "urn:martlet:configuration:1"),
            ("title", "Martlet configuration"),
        ]
        members += block(GatewayConfiguration.grammar)
        members.append(
            (
                "$defs",
                [
                    "provider": provider(providers),
                    "authorize": .object(JSONObject(condition(ConditionConfiguration.entryGrammar))),
                    "condition": .object(JSONObject(condition(ConditionConfiguration.grammar))),
                ]
            ))
        return .object(JSONObject(members))
    }

    private static func schema(_ shape: ConfigurationGrammar.Shape) -> [(String, JSONValue)] {
        switch shape {
        case .text, .literal: [("type", ["string", "number", "boolean"])]
        case .constant(let text): [("const", .string(text))]
        case .path: [("type", "string"), ("minLength", 1)]
        case .url: [("type", "string"), ("pattern", .string(orVariable("^https?://[^@#]+$")))]
        case .pattern(let pattern): [("type", "string"), ("pattern", .string(orVariable(pattern)))]
        case .duration: [("type", "string"), ("pattern", .string(orVariable("^[0-9]+(ms|s|m|h|d)$")))]
        case .size: [("type", "string"), ("pattern", .string(orVariable("^[0-9]+(B|KiB|MiB|GiB)$")))]
        case .choice(let names):
            [("anyOf", [["enum": .array(names.map { .string($0) })], variable])]
        case .boolean: [("anyOf", [["type": "boolean"], variable])]
        case .number: [("anyOf", [["type": "number"], variable])]
        case .integer(let range):
            [
                (
                    "anyOf",
                    [
                        [
                            "type": "integer", "minimum": .integer(Int64(range.lowerBound)),
                            "maximum": .integer(Int64(range.upperBound)),
                        ],
                        variable,
                    ]
                )
            ]
        case .list(let element, let nonEmpty):
            [("type", "array"), ("items", object(element))] + (nonEmpty ? [("minItems", 1)] : [])
        case .map(let element): [("type", "object"), ("additionalProperties", object(element))]
        case .block(let grammar): block(grammar)
        case .either(let shapes): [("anyOf", .array(shapes.map(object)))]
        case .provider: [("$ref", "#/$defs/provider")]
        case .condition: [("$ref", "#/$defs/condition")]
        case .authorize: [("$ref", "#/$defs/authorize")]
        case .unsupported: [("not", [:])]
        case .anything: []
        }
    }

    private static func object(_ shape: ConfigurationGrammar.Shape) -> JSONValue { .object(JSONObject(schema(shape))) }

    private static func block(_ grammar: ConfigurationGrammar) -> [(String, JSONValue)] {
        var members: [(String, JSONValue)] = [("type", "object")]
        members.append(("properties", .object(JSONObject(grammar.keys.map { ($0.name, property($0)) }))))
        let required = grammar.keys.filter(\.isRequired).map { JSONValue.string($0.name) }
        if !required.isEmpty { members.append(("required", .array(required))) }
        members.append(("additionalProperties", false))
        let groups = grammar.oneOf.map(exactlyOne) + grammar.exclusive.map(notTogether)
        if !groups.isEmpty { members.append(("allOf", .array(groups))) }
        return members
    }

    private static func property(_ key: ConfigurationGrammar.Key) -> JSONValue {
        var members: [(String, JSONValue)] = [("description", .string(key.summary))]
        if let fallback = key.fallback { members.append(("default", literal(fallback))) }
        return .object(JSONObject(members + schema(key.shape)))
    }

    private static func literal(_ text: String) -> JSONValue {
        ConfigurationNode(defaultText: text).map(literal) ?? .string(text)
    }

    private static func literal(_ node: ConfigurationNode) -> JSONValue {
        switch node.content {
        case .mapping(let entries): .object(JSONObject(entries.map { ($0.key.value, literal($0.value)) }))
        case .sequence(let elements): .array(elements.map(literal))
        case .scalar(let scalar) where scalar.isPlain && scalar.text == "true": true
        case .scalar(let scalar) where scalar.isPlain && scalar.text == "false": false
        case .scalar(let scalar):
            (scalar.isPlain ? Int64(scalar.text) : nil).map { .integer($0) } ?? .string(scalar.text)
        }
    }

    private static func exactlyOne(of names: [String]) -> JSONValue {
        ["oneOf": .array(names.map { ["required": [.string($0)]] })]
    }

    private static func notTogether(_ names: [String]) -> JSONValue {
        ["not": ["required": .array(names.map { .string($0) })]]
    }

    /// Provider blocks by `kind`, each with the keys of its plugin; an error is that of its kind alone.
    private static func provider(_ providers: [(kind: String, grammar: ConfigurationGrammar?)]) -> JSONValue {
        guard !providers.isEmpty else { return ["not": [:]] }
        let kinds = providers.compactMap { kind, grammar -> JSONValue? in
            guard let grammar else { return nil }
            let kindKey = ConfigurationGrammar.Key.required("kind", .constant(kind), "The kind of the plugin.")
            return [
                "if": ["properties": ["kind": ["const": .string(kind)]], "required": ["kind"]],
                "then": .object(
                    JSONObject(block(grammar.adding([kindKey] + ProviderConfiguration.sharedKeys(besides: grammar))))),
            ]
        }
        return [
            "type": "object", "required": ["kind"],
            "properties": ["kind": ["enum": .array(providers.map { .string($0.kind) })]],
            "allOf": .array(kinds),
        ]
    }

    /// A condition has a claim with exactly one test, or `any`, `max_age` or `acr` as its only key.
    private static func condition(_ grammar: ConfigurationGrammar?) -> [(String, JSONValue)] {
        guard let grammar else { return [] }
        let alone = ["any", "max_age", "acr"].filter(grammar.keyNames.contains)
        let forms = alone.map { name -> JSONValue in ["required": [.string(name)], "maxProperties": 1] }
        let tests = ConditionConfiguration.tests.map { test -> JSONValue in ["required": [.string(test.row.name)]] }
        return block(grammar) + [("anyOf", .array(forms + [["required": ["claim"], "oneOf": .array(tests)]]))]
    }

    /// A value that contains a variable, whose value is not known yet.
    private static let variable: JSONValue = ["type": "string", "pattern": "\\$\\{"]

    private static func orVariable(_ pattern: String) -> String { "\(pattern)|\\$\\{" }
}
