internal import MartletConfig

/// An invalid member of a request body, reported to the developer of the client.
///
/// It must not contain secrets or values that the client sent: it is sent in the response (RFC 9457), and the member's
/// name is written to the access log.
public struct BodyError: Sendable, Equatable {
    /// The machine-readable code.
    public enum Code: String, Sendable, CaseIterable {
        /// A required member is absent.
        case missing
        /// The member has the wrong JSON type.
        case unknownType = "unknown_type"
        /// The member occurs more than once.
        case repeated
        case tooShort = "too_short"
        case tooLong = "too_long"
        /// The member's value is not allowed.
        case invalid
        /// A new password that is on a list of breached ones.
        case breached
        /// The body cannot be parsed.
        case malformed
    }

    /// The member as a JSON Pointer (RFC 6901), also for forms; empty for the whole body.
    public let pointer: String
    public let code: Code
    /// One sentence for humans.
    public let detail: String

    /// - Parameters:
    ///   - path: the names of the enclosing objects and of the member; empty for the whole body.
    ///   - detail: one sentence in ASCII; `nil` for the default of the code.
    public init(_ path: [String], _ code: Code, detail: String? = nil) {
        pointer = path.map { "/" + BodyError.escaped($0) }.joined()
        self.code = code
        self.detail = detail ?? BodyError.sentence(path.joined(separator: "."), code)
    }

    /// An error of a top-level member.
    public init(_ member: String, _ code: Code, detail: String? = nil) {
        self.init([member], code, detail: detail)
    }

    /// A missing member.
    /// - Parameter names: the names that the client sent; a similar one is suggested.
    init(missing member: String, among names: some Sequence<String>) {
        let nearest = NearMiss.find(member, among: names)
        let hint = nearest.map { " (`\($0)`: did you mean `\(member)`?)" } ?? ""
        self.init(member, .missing, detail: "The member `\(member)` is missing\(hint).")
    }

    private static func escaped(_ name: String) -> String {
        String(
            decoding: name.utf8.flatMap { byte in
                switch byte {
                case UInt8(ascii: "~"): Array("~0".utf8)
                case UInt8(ascii: "/"): Array("~1".utf8)
                default: [byte]
                }
            }, as: UTF8.self)
    }

    private static func sentence(_ member: String, _ code: Code) -> String {
        let what = member.isEmpty ? "The body" : "The member `\(member)`"
        return switch code {
        case .missing: "\(what) is missing."
        case .unknownType: "\(what) has the wrong type."
        case .repeated: member.isEmpty ? "A member is repeated." : "\(what) is repeated."
        case .tooShort: "\(what) is too short."
        case .tooLong: "\(what) is too long."
        case .invalid, .breached: "\(what) is not valid."
        case .malformed: "\(what) cannot be read."
        }
    }
}

/// Finds the client's misspelling of a known name.
@frozen package enum NearMiss {
    private static let maximumLength = 40
    private static let maximumNames = 256
    /// Names that other systems have for the same member, and that look different.
    private static let synonyms = ["username": ["email", "user", "login", "name"]]

    /// The most similar of some names, if any is similar enough.
    ///
    /// Only names of letters, digits, `_`, `-` and `.` are considered, so that the result is safe to print.
    package static func find(_ wanted: String, among names: some Sequence<String>) -> String? {
        let candidates = names.lazy.filter(isPlain).prefix(maximumNames).sorted()
        if let other = synonyms[wanted]?.first(where: candidates.contains) { return other }
        return Suggestion.nearest(to: wanted, among: candidates)
    }

    private static func isPlain(_ name: String) -> Bool {
        (1...maximumLength).contains(name.utf8.count)
            && name.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"), UInt8(ascii: "."):
                    true
                default: false
                }
            }
    }
}
