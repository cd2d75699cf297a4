import MartletConfig
import MartletCore
import MartletJSON

/// A test of one claim.
enum ClaimTest: Sendable {
    /// Equal type and value: numbers by value, strings byte by byte.
    case equals(ClaimLiteral)
    case isIn([ClaimLiteral])
    /// An array with this element, or a string that contains this string.
    case contains(ClaimLiteral)
    /// A string that the whole pattern matches.
    case matches(RegularExpression)
    case exists(Bool)
    case greaterThan(Double)
    case lessThan(Double)

    /// The result of a test.
    enum Outcome: Equatable {
        case decided(Bool)
        case undecided(ErrorCode)
    }

    /// Tests a claim; null counts as absent.
    func outcome(for claim: JSONValue?) -> Outcome {
        var claim = claim
        if case .null? = claim { claim = nil }
        if case .exists(let wanted) = self { return .decided((claim != nil) == wanted) }
        guard let claim else { return .undecided(.policyClaimMissing) }
        switch self {
        case .equals(let literal): return Self.equality(claim, [literal])
        case .isIn(let literals): return Self.equality(claim, literals)
        case .contains(let literal): return Self.membership(claim, literal)
        case .matches(let pattern): return Self.match(claim, pattern)
        case .greaterThan(let bound): return Self.order(claim, bound) { $0 == .greater }
        case .lessThan(let bound): return Self.order(claim, bound) { $0 == .less }
        case .exists: return .undecided(.policyClaimMissing)
        }
    }

    private static func equality(_ claim: JSONValue, _ literals: [ClaimLiteral]) -> Outcome {
        var isComparable = false
        for literal in literals {
            guard let equal = compare(claim, literal) else { continue }
            if equal { return .decided(true) }
            isComparable = true
        }
        return isComparable ? .decided(false) : .undecided(.policyClaimType)
    }

    /// - Returns: `nil` if the types differ.
    private static func compare(_ claim: JSONValue, _ literal: ClaimLiteral) -> Bool? {
        switch (claim, literal) {
        case (.bool(let left), .bool(let right)): left == right
        case (.string(let left), .text(let right)): left.hasSameBytes(as: right)
        case (.number(let left), .number(let right)): Ordering(left, right).map { $0 == .equal }
        default: nil
        }
    }

    private static func membership(_ claim: JSONValue, _ literal: ClaimLiteral) -> Outcome {
        switch (claim, literal) {
        case (.array(let elements), _):
            var allComparable = true
            for element in elements {
                guard let equal = compare(element, literal) else {
                    allComparable = false
                    continue
                }
                if equal { return .decided(true) }
            }
            return allComparable ? .decided(false) : .undecided(.policyClaimType)
        case (.string(let text), .text(let part)):
            return .decided(text.hasBytes(of: part))
        default:
            return .undecided(.policyClaimType)
        }
    }

    private static func match(_ claim: JSONValue, _ pattern: RegularExpression) -> Outcome {
        guard case .string(let text) = claim else { return .undecided(.policyClaimType) }
        switch pattern.match(text.utf8Span.span) {
        case .matched: return .decided(true)
        case .unmatched: return .decided(false)
        case .failed: return .undecided(.policyMatchLimit)
        }
    }

    private static func order(_ claim: JSONValue, _ bound: Double, _ holds: (Ordering) -> Bool) -> Outcome {
        guard case .number(let number) = claim, let ordering = Ordering(number, bound) else {
            return .undecided(.policyClaimType)
        }
        return .decided(holds(ordering))
    }
}

/// The order of a claim's number and a configured one; exact even if a double cannot represent the claim.
enum Ordering {
    case less, equal, greater

    /// - Returns: `nil` for a number without a finite value.
    init?(_ number: JSONNumber, _ bound: Double) {
        if let integer = number.int64, let exact = Int64(exactly: bound) {
            self = integer < exact ? .less : integer == exact ? .equal : .greater
        } else if let value = number.double {
            self = value < bound ? .less : value == bound ? .equal : .greater
        } else {
            return nil
        }
    }
}

extension ClaimTest {
    /// Larger integers are not exact as doubles, so that a comparison could accept an adjacent value.
    private static let largestExact = 9_007_199_254_740_992.0

    init(_ test: ConditionConfiguration.Test) throws(ConditionError) {
        switch test {
        case .equals(let literal): self = .equals(try Self.checked(literal))
        case .isIn(let literals):
            guard !literals.isEmpty else {
                throw ConditionError(text: "has an empty 'in', which never matches", location: nil)
            }
            for literal in literals { _ = try Self.checked(literal) }
            self = .isIn(literals)
        case .contains(let literal):
            if case .text("") = literal { throw ConditionError(text: "has an empty 'contains'", location: nil) }
            self = .contains(try Self.checked(literal))
        case .matches(let pattern):
            do {
                self = .matches(try RegularExpression(pattern.value, of: .text))
            } catch {
                throw ConditionError(text: "has a 'matches' that \(error)", location: pattern.location)
            }
        case .exists(let wanted): self = .exists(wanted)
        case .greaterThan(let bound): self = .greaterThan(try Self.checked(bound))
        case .lessThan(let bound): self = .lessThan(try Self.checked(bound))
        }
    }

    private static func checked(_ literal: ClaimLiteral) throws(ConditionError) -> ClaimLiteral {
        if case .number(let number) = literal { _ = try checked(number) }
        return literal
    }

    private static func checked(_ number: Double) throws(ConditionError) -> Double {
        guard number.magnitude < largestExact else {
            throw ConditionError(text: "has a number beyond ±2^53, which cannot be compared exactly", location: nil)
        }
        return number
    }
}

extension ClaimTest: CustomStringConvertible {
    var description: String {
        switch self {
        case .equals(let literal): "equals \(literal.configurationText)"
        case .isIn(let literals): "in [\(literals.map(\.configurationText).joined(separator: ", "))]"
        case .contains(let literal): "contains \(literal.configurationText)"
        case .matches(let pattern): "matches \(pattern.source)"
        case .exists(let wanted): "exists \(wanted)"
        case .greaterThan(let bound): "gt \(ClaimLiteral.number(bound).configurationText)"
        case .lessThan(let bound): "lt \(ClaimLiteral.number(bound).configurationText)"
        }
    }
}

extension ClaimLiteral {
    /// The literal as written in the configuration.
    fileprivate var configurationText: String {
        switch self {
        case .bool(let value): "\(value)"
        case .number(let value): Int64(exactly: value).map(String.init) ?? "\(value)"
        case .text(let value): "'\(value)'"
        }
    }
}

extension String {
    /// Whether this string contains the bytes of another one.
    fileprivate func hasBytes(of part: String) -> Bool {
        let text = Array(utf8)
        let wanted = Array(part.utf8)
        guard let first = wanted.first, wanted.count <= text.count else { return wanted.isEmpty }
        return (0...(text.count - wanted.count)).contains { start in
            text[start] == first && text[start..<(start + wanted.count)].elementsEqual(wanted)
        }
    }
}
