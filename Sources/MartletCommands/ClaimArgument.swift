internal import MartletAccounts
internal import MartletCore
internal import MartletJSON

/// A claim as an argument: `role=staff` is a text, `teams=a,b` a list of texts, `level:=3` a value as JSON.
///
/// In texts a backslash takes the meaning of a comma or a backslash behind it.
struct ClaimArgument: Equatable {
    let name: String
    let value: JSONValue

    /// An argument that is not a claim, or whose claim cannot be set.
    struct ParseError: Error {
        let message: String
    }

    private static let limits = JSONLimits(maximumDepth: 4, maximumBytes: 2 * ClaimRules.maximumBytes)

    init(_ argument: String) throws(ParseError) {
        guard let equals = argument.utf8.firstIndex(of: UInt8(ascii: "=")) else {
            throw ParseError(message: "a claim is NAME=VALUE, or NAME:=JSON")
        }
        let left = argument[..<equals]
        let right = String(argument[argument.utf8.index(after: equals)...])
        if left.hasSuffix(":") {
            guard let value = try? JSON.parse(Array(right.utf8), limits: Self.limits) else {
                throw ParseError(message: "the value of a claim after := must be JSON: 3, true, \"a, b\", [\"a\"]")
            }
            (name, self.value) = (String(left.dropLast()), value)
        } else {
            guard !right.isEmpty else {
                throw ParseError(message: "a claim without a value: write NAME:=\"\" for an empty text, or unset it")
            }
            let texts = Self.texts(right)
            (name, value) = (String(left), texts.count == 1 ? .string(texts[0]) : .array(texts.map { .string($0) }))
        }
    }

    /// The claims of arguments as a change.
    /// - Throws: also for a name that is given twice, or a claim that cannot be set.
    static func patch(_ arguments: [String]) throws(ParseError) -> ClaimPatch {
        var changes = JSONObject()
        for argument in arguments {
            let claim = try ClaimArgument(argument)
            guard !changes.has(claim.name) else { throw ParseError(message: "a claim is given more than once") }
            changes[claim.name] = claim.value
        }
        return try patch(changes)
    }

    static func removal(of names: [String]) throws(ParseError) -> ClaimPatch {
        try patch(JSONObject(names.map { ($0, .null) }))
    }

    private static func patch(_ changes: JSONObject) throws(ParseError) -> ClaimPatch {
        do throws(AccountError) {
            return try ClaimPatch(changes)
        } catch {
            throw ParseError(message: error.description)
        }
    }

    private static func texts(_ text: String) -> [String] {
        var texts = [""]
        var isEscaped = false
        for character in text.unicodeScalars {
            if !isEscaped, character == "\\" {
                isEscaped = true
                continue
            }
            if !isEscaped, character == "," {
                texts.append("")
            } else {
                // A backslash before anything else is itself.
                if isEscaped, character != ",", character != "\\" { texts[texts.count - 1] += "\\" }
                texts[texts.count - 1].unicodeScalars.append(character)
            }
            isEscaped = false
        }
        if isEscaped { texts[texts.count - 1] += "\\" }
        return texts
    }
}
