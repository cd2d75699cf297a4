import MartletConfig
import MartletCore
import MartletJSON

/// One condition of `authorize`.
///
/// Types are strict: `true` is not `"true"`, `1` is not `"1"`. An absent or null claim equals nothing, so a condition
/// on it fails, and its inversion by `not: true` holds. A condition that cannot be evaluated (the test cannot compare
/// the claim's type, or a pattern exceeded its match limit) fails whether or not it is inverted: a claim in an
/// unexpected form never grants access.
indirect enum Condition: Sendable {
    case claim(name: String, test: ClaimTest, inverted: Bool)
    /// At least one holds.
    case any([Condition])

    /// - Returns: the error code if it fails; `nil` if it holds.
    func failure(for claims: JSONObject) -> ErrorCode? {
        switch self {
        case .claim(let name, let test, let inverted):
            switch test.outcome(for: claims[name]) {
            case .decided(let holds): holds != inverted ? nil : .policyClaimMismatch
            case .undecided(.policyClaimMissing) where inverted: nil
            case .undecided(let reason): reason
            }
        case .any(let conditions):
            conditions.contains { $0.failure(for: claims) == nil } ? nil : .policyClaimMismatch
        }
    }

    /// The name of the claim, safe for a terminal; `any` for a list of conditions.
    var subject: String {
        switch self {
        case .claim(let name, _, _): String(String.UnicodeScalarView(name.unicodeScalars.map(Self.printable)))
        case .any: "any"
        }
    }

    private static func printable(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator: "?"
        default: scalar
        }
    }

    /// The values of its claims, for `martlet explain`.
    func values(in claims: JSONObject) -> String {
        switch self {
        case .claim(let name, _, _): "\(name) is \(Self.shown(claims[name]))"
        case .any(let conditions): conditions.map { $0.values(in: claims) }.joined(separator: ", ")
        }
    }

    /// A value in one line of printable ASCII.
    private static func shown(_ value: JSONValue?) -> String {
        guard let value else { return "absent" }
        let limit = 80
        let bytes = JSON.write(value)
        let text = bytes.prefix(limit).map { $0.isPrintable ? String(UnicodeScalar($0)) : "?" }.joined()
        return bytes.count > limit ? text + "…" : text
    }
}

extension Condition: CustomStringConvertible {
    /// The condition as text.
    var description: String {
        switch self {
        case .claim(let name, let test, let inverted): "claim '\(name)' \(inverted ? "not: " : "")\(test)"
        case .any(let conditions): "any of (\(conditions.map(\.description).joined(separator: "; ")))"
        }
    }
}

/// Why a condition of the configuration is invalid.
struct ConditionError: Error {
    let text: String
    /// The position, if it is more precise than that of the route.
    let location: SourceLocation?
}

extension Condition {
    /// The maximum nesting of `any`.
    private static let maximumDepth = 16

    init(_ configuration: ConditionConfiguration, depth: Int) throws(ConditionError) {
        switch configuration {
        case .claim(let name, let test, let inverted):
            self = .claim(name: name, test: try ClaimTest(test), inverted: inverted)
        case .any(let list):
            guard !list.isEmpty else {
                throw ConditionError(text: "has an empty 'any', which never matches", location: nil)
            }
            guard depth < Self.maximumDepth else {
                throw ConditionError(text: "nests 'any' more than \(Self.maximumDepth) deep", location: nil)
            }
            var conditions: [Condition] = []
            for element in list { conditions.append(try Condition(element, depth: depth + 1)) }
            self = .any(conditions)
        }
    }
}
