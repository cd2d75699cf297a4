package import MartletJSON

/// The part of JSON Schema (2020-12) that our own descriptions use; a keyword that it does not know is a finding.
package struct JSONSchema: Sendable {
    /// The document that `$ref` points into.
    private let document: JSONObject

    package init(document: JSONObject) { self.document = document }

    private static let annotations: Set<String> = ["description", "title", "default", "examples"]

    /// What is wrong with a value by a schema; empty when nothing is.
    package func findings(_ value: JSONValue, _ schema: JSONObject, at path: String = "$") -> [String] {
        var found: [String] = []
        for rule in schema.members where !Self.annotations.contains(rule.name) {
            found += findings(value, rule: rule.name, rule.value, at: path, in: schema)
        }
        return found
    }

    /// The object that a reference such as `#/components/schemas/Problem` names.
    package func resolve(_ object: JSONObject) -> JSONObject? {
        guard let reference = object["$ref"]?.string else { return object }
        guard reference.hasPrefix("#/") else { return nil }
        var target: JSONValue? = .object(document)
        for step in reference.dropFirst(2).split(separator: "/") { target = target?.object?[String(step)] }
        return target?.object.flatMap { resolve($0) }
    }

    private func findings(
        _ value: JSONValue, rule: String, _ operand: JSONValue, at path: String, in schema: JSONObject
    ) -> [String] {
        func check(_ holds: Bool) -> [String] { holds ? [] : ["\(path): \(rule)"] }
        switch rule {
        case "$ref":
            guard let target = resolve(schema) else { return ["\(path): a reference to nothing"] }
            return findings(value, target, at: path)
        case "type": return check((operand.array ?? [operand]).contains { Self.isOf($0.string ?? "", value) })
        case "const": return check(value == operand)
        case "enum": return check(operand.array?.contains(value) ?? false)
        case "allOf":
            return (operand.array ?? []).flatMap { findings(value, $0.object ?? ["const": nil], at: path) }
        case "anyOf":
            return check(
                (operand.array ?? []).contains { findings(value, $0.object ?? ["const": nil], at: path).isEmpty })
        case "required", "properties", "additionalProperties":
            guard let object = value.object else { return [] }
            return findings(members: object, rule: rule, operand, at: path, in: schema)
        case "items":
            return (value.array ?? []).enumerated().flatMap { index, element in
                findings(element, operand.object ?? [:], at: "\(path)[\(index)]")
            }
        case "minimum": return check(value.double.map { $0 >= operand.double ?? .infinity } ?? true)
        case "minLength": return check(Self.length(value).map { $0 >= operand.int64 ?? .max } ?? true)
        case "maxLength": return check(Self.length(value).map { $0 <= operand.int64 ?? 0 } ?? true)
        case "pattern":
            // Only beginnings are described so.
            guard let pattern = operand.string, pattern.hasPrefix("^") else { return ["\(path): a pattern too far"] }
            return check(value.string?.hasPrefix(pattern.dropFirst()) ?? true)
        default: return ["\(path): the keyword \(rule) is not known"]
        }
    }

    private func findings(
        members object: JSONObject, rule: String, _ operand: JSONValue, at path: String, in schema: JSONObject
    ) -> [String] {
        switch rule {
        case "required":
            return (operand.array ?? []).compactMap(\.string).filter { object[$0] == nil }.map {
                "\(path).\($0): missing"
            }
        case "properties":
            return (operand.object?.members ?? []).flatMap { member in
                object[member.name].map { findings($0, member.value.object ?? [:], at: "\(path).\(member.name)") } ?? []
            }
        default:
            guard operand.bool == false else { return [] }
            let known = schema["properties"]?.object
            return object.members.filter { known?[$0.name] == nil }.map { "\(path).\($0.name): not described" }
        }
    }

    private static func isOf(_ type: String, _ value: JSONValue) -> Bool {
        switch (type, value) {
        case ("object", .object), ("array", .array), ("string", .string), ("boolean", .bool), ("null", .null),
            ("number", .number):
            true
        case ("integer", .number(let number)): number.int64 != nil
        default: false
        }
    }

    private static func length(_ value: JSONValue) -> Int64? { value.string.map { Int64($0.unicodeScalars.count) } }
}
