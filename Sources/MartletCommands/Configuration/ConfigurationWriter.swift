internal import MartletJSON

/// Writes the members of a configuration as YAML or JSON.
enum ConfigurationWriter {
    typealias Value = EffectiveConfiguration.Value
    typealias Member = EffectiveConfiguration.Member

    static func yaml(_ members: [Member]) -> String {
        members.flatMap { lines($0.key, $0.value, "") }.joined(separator: "\n") + "\n"
    }

    private static func lines(_ key: String, _ value: Value, _ indent: String) -> [String] {
        let head = "\(indent)\(scalar(.quoted(key), isKey: true)):"
        switch value {
        case .map(let members) where !members.isEmpty:
            return [head] + members.flatMap { lines($0.key, $0.value, indent + "  ") }
        case .list(let elements) where elements.contains(where: isNested):
            return [head] + elements.flatMap { item($0, indent + "  ") }
        default: return ["\(head) \(flow(value))"]
        }
    }

    /// An element of a list, whose first line begins with a hyphen.
    private static func item(_ value: Value, _ indent: String) -> [String] {
        guard case .map(let members) = value, !members.isEmpty else { return ["\(indent)- \(flow(value))"] }
        let inner = members.flatMap { lines($0.key, $0.value, indent + "  ") }
        guard let first = inner.first else { return [] }
        return ["\(indent)- \(first.dropFirst(indent.count + 2))"] + inner.dropFirst()
    }

    private static func isNested(_ value: Value) -> Bool {
        switch value {
        case .map, .list: true
        default: false
        }
    }

    /// A value in one line.
    private static func flow(_ value: Value) -> String {
        switch value {
        case .list(let elements): "[\(elements.map(flow).joined(separator: ", "))]"
        case .map(let members):
            members.isEmpty
                ? "{}"
                : "{ "
                    + members.map { "\(scalar(.quoted($0.key), isKey: true)): \(flow($0.value))" }.joined(
                        separator: ", ")
                    + " }"
        default: scalar(value, isKey: false)
        }
    }

    private static func scalar(_ value: Value, isKey: Bool) -> String {
        switch value {
        case .plain(let text): isSafe(text) ? text : doubleQuoted(text, keepsVariables: false)
        case .quoted(let text): isKey && isSafe(text) ? text : doubleQuoted(text, keepsVariables: false)
        case .reference(let text): doubleQuoted(text, keepsVariables: true)
        case .list, .map: ""
        }
    }

    /// Whether a text means itself without quotes, in a flow list, too.
    private static func isSafe(_ text: String) -> Bool {
        guard let first = text.utf8.first, let last = text.utf8.last, last != 0x3A else { return false }
        let isLetter = { (byte: UInt8) in (0x30...0x39).contains(byte) || (0x61...0x7A).contains(byte | 0x20) }
        return (isLetter(first) || "/._".utf8.contains(first))
            && text.utf8.allSatisfy { isLetter($0) || "/._-:+@%=".utf8.contains($0) }
    }

    private static func doubleQuoted(_ text: String, keepsVariables: Bool) -> String {
        var result = "\""
        for scalar in (keepsVariables ? text : text.replacing("${", with: "$${")).unicodeScalars {
            switch scalar {
            case "\"", "\\": result += "\\\(scalar)"
            case "\n": result += "\\n"
            case "\t": result += "\\t"
            default:
                if scalar.properties.generalCategory == .control || scalar.properties.generalCategory == .format {
                    result += "\\U" + String(repeating: "0", count: 8 - String(scalar.value, radix: 16).count)
                    result += String(scalar.value, radix: 16)
                } else {
                    result.unicodeScalars.append(scalar)
                }
            }
        }
        return result + "\""
    }

    /// The JSON document, with numbers and booleans as such.
    static func json(_ members: [Member]) -> JSONValue {
        .object(JSONObject(members.map { ($0.key, json($0.value)) }))
    }

    private static func json(_ value: Value) -> JSONValue {
        switch value {
        case .plain("true"): true
        case .plain("false"): false
        case .plain(let text): Int64(text).map { .integer($0) } ?? .string(text)
        case .quoted(let text), .reference(let text): .string(text)
        case .list(let elements): .array(elements.map(json))
        case .map(let members): json(members)
        }
    }
}
