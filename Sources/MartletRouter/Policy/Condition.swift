import MartletConfig
import MartletCore
import MartletJSON

/// One condition of `authorize`.
///
/// Types are strict: `true` is not `"true"`, `1` is not `"1"`. An absent or null claim equals nothing, so a condition
/// on it fails, unless it has `or_absent: true`, and its inversion by `not: true` holds. A condition that cannot be evaluated (the test cannot compare
/// the claim's type, or a pattern exceeded its match limit) fails whether or not it is inverted: a claim in an
/// unexpected form never grants access.
indirect enum Condition: Sendable {
    case claim(ClaimPath, test: ClaimTest, inverted: Bool, orAbsent: Bool)
    /// At least one holds.
    case any([Condition])

    /// - Returns: the error code if it fails; `nil` if it holds.
    func failure(for claims: JSONObject) -> ErrorCode? {
        switch self {
        case .claim(let path, let test, let inverted, let orAbsent):
            switch Self.outcome(of: test, for: path, in: claims) {
            case .decided(let holds): holds != inverted ? nil : .policyClaimMismatch
            case .undecided(.policyClaimMissing) where inverted || orAbsent: nil
            case .undecided(let reason): reason
            }
        case .any(let conditions):
            Self.failure(ofAll: conditions, claims)
        }
    }

    private static func outcome(of test: ClaimTest, for path: ClaimPath, in claims: JSONObject) -> ClaimTest.Outcome {
        switch path.lookup(in: claims) {
        case .found(let value): test.outcome(for: value)
        // Whatever the test: the claim is there, but not in the token.
        case .absent where isElsewhere(path.name, claims): .undecided(.policyClaimElsewhere)
        case .absent: test.outcome(for: nil)
        // Another form of the claim than the one that the condition is about.
        case .blocked: .undecided(.policyClaimType)
        }
    }

    private static func failure(ofAll conditions: [Condition], _ claims: JSONObject) -> ErrorCode? {
        var failure = ErrorCode.policyClaimMismatch
        for condition in conditions {
            guard let other = condition.failure(for: claims) else { return nil }
            if other == .policyClaimElsewhere { failure = other }
        }
        return failure
    }

    /// Whether the issuer says that a claim was too large for the token (OIDC Core §5.6.2): Microsoft Entra does so for
    /// users of many groups.
    private static func isElsewhere(_ name: String, _ claims: JSONObject) -> Bool {
        guard claims[name] == nil else { return false }
        if let names = claims["_claim_names"]?.object, names.has(name) { return true }
        guard let mark = claims["hasgroups"] else { return false }
        return (mark == true || mark == "true") && name.hasSameBytes(as: "groups")
    }

    /// The name of the claim, `[a, b]` for a member, or `any (a, b)` for a list of conditions, safe for logs and terminals.
    ///
    /// Bytes other than printable ASCII, and quotes, backslashes and percent signs, become `%XX`; long names are cut.
    var subject: String {
        switch self {
        case .claim(let path, _, _, _): Self.safe(path.description)
        case .any(let conditions):
            "any (" + conditions.prefix(Self.maximumNames).map(\.subject).joined(separator: ", ")
                + (conditions.count > Self.maximumNames ? ", ...)" : ")")
        }
    }

    private static let maximumNames = 4
    private static let maximumNameBytes = 64

    private static func safe(_ name: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var bytes: [UInt8] = []
        for byte in name.utf8.prefix(maximumNameBytes) {
            if (0x20...0x7E).contains(byte), ![0x22, 0x25, 0x5C].contains(byte) {
                bytes.append(byte)
            } else {
                bytes += [0x25, digits[Int(byte >> 4)], digits[Int(byte & 0x0F)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The values of its claims, for `martlet explain`.
    func values(in claims: JSONObject) -> String {
        switch self {
        case .claim(let path, _, _, _): "\(path) is \(Self.shown(path.value(in: claims)))"
        case .any(let conditions): conditions.map { $0.values(in: claims) }.joined(separator: ", ")
        }
    }

    /// A value in one line of printable ASCII.
    static func shown(_ value: JSONValue?) -> String {
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
        case .claim(let path, let test, let inverted, let orAbsent):
            "claim '\(path)' \(inverted ? "not: " : "")\(test)\(orAbsent ? " or absent" : "")"
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
        case .claim(let path, let test, let inverted, let orAbsent):
            self = .claim(path, test: try ClaimTest(test), inverted: inverted, orAbsent: orAbsent)
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
