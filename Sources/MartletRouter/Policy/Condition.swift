import MartletConfig
import MartletCore
import MartletJSON

/// One condition of `authorize`.
///
/// Types are strict: `true` is not `"true"`, `1` is not `"1"`. A claim that is absent (or null) equals nothing, so a
/// condition on it fails, and its inversion by `not: true` holds. A condition that cannot be decided (the claim's type is
/// not one that the test compares with, a pattern gave up) fails whether or not it is inverted: a claim that comes in an
/// unexpected form never opens a route.
indirect enum Condition: Sendable {
    case claim(name: String, test: ClaimTest, inverted: Bool)
    /// At least one holds.
    case any([Condition])

    /// - Returns: `nil` if it holds, else why not.
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

    /// The claim it is about, as far as one line of a terminal can show it; `any` for a list of conditions.
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

    /// The claims it looks at, as they are; for `martlet explain`.
    func seen(in claims: JSONObject) -> String {
        switch self {
        case .claim(let name, _, _): "\(name) is \(Self.shown(claims[name]))"
        case .any(let conditions): conditions.map { $0.seen(in: claims) }.joined(separator: ", ")
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
    /// The condition in words.
    var description: String {
        switch self {
        case .claim(let name, let test, let inverted): "claim '\(name)' \(inverted ? "not: " : "")\(test)"
        case .any(let conditions): "any of (\(conditions.map(\.description).joined(separator: "; ")))"
        }
    }
}

/// What went wrong with a condition of the configuration.
struct ConditionError: Error {
    let text: String
    /// Where, if the configuration knows better than the route's own place.
    let location: SourceLocation?
}

extension Condition {
    /// `any` within `any` within … so often.
    private static let maximumDepth = 16

    init(_ configuration: ConditionConfiguration, depth: Int) throws(ConditionError) {
        switch configuration {
        case .claim(let name, let test, let inverted):
            self = .claim(name: name, test: try ClaimTest(test), inverted: inverted)
        case .any(let list):
            guard !list.isEmpty else {
                throw ConditionError(text: "has an empty 'any', which never holds", location: nil)
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
