internal import MartletConfig

/// What is wrong with a member of a request's body, as the developer of the app that sent it is told.
///
/// Nothing secret and nothing that the client sent may be in it: it goes back in the response (RFC 9457), and the
/// member's name into the access log.
public struct BodyError: Sendable, Equatable {
    /// For programs.
    public enum Code: String, Sendable, CaseIterable {
        /// The member must be there and is not.
        case missing
        /// The member is of another JSON type than it must be.
        case unknownType = "unknown_type"
        /// The member is there twice.
        case repeated
        case tooShort = "too_short"
        case tooLong = "too_long"
        /// The member's value is none that it can have.
        case invalid
        /// The body cannot be read at all.
        case malformed
    }

    /// Which member, as a JSON Pointer (RFC 6901), of forms too; empty for the whole body.
    public let pointer: String
    public let code: Code
    /// One sentence for a person.
    public let detail: String

    /// - Parameters:
    ///   - path: the member's name, behind the names of the objects that it is in; empty for the whole body.
    ///   - detail: one sentence in ASCII; `nil` for what the code says.
    public init(_ path: [String], _ code: Code, detail: String? = nil) {
        pointer = path.map { "/" + BodyError.escaped($0) }.joined()
        self.code = code
        self.detail = detail ?? BodyError.sentence(path.joined(separator: "."), code)
    }

    /// The same for one member of the body itself.
    public init(_ member: String, _ code: Code, detail: String? = nil) {
        self.init([member], code, detail: detail)
    }

    /// A member that is missing.
    /// - Parameter names: what the client has sent; one that was probably meant is named.
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
        case .unknownType: "\(what) is of another type than it must be."
        case .repeated: member.isEmpty ? "A member is there twice." : "\(what) is there twice."
        case .tooShort: "\(what) is too short."
        case .tooLong: "\(what) is too long."
        case .invalid: "\(what) is not valid."
        case .malformed: "\(what) cannot be read."
        }
    }
}

/// Finds the name of a client's that was probably meant to be one of ours.
package enum NearMiss {
    private static let longest = 40
    private static let mostNames = 256

    /// The nearest of some names to one that was looked for.
    ///
    /// Only names of letters, digits, `_`, `-` and `.` are near to anything: what is found may be printed as it is.
    package static func find(_ wanted: String, among names: some Sequence<String>) -> String? {
        let candidates = names.lazy.filter(isPlain).prefix(mostNames).sorted()
        return Suggestion.nearest(to: wanted, among: candidates)
    }

    private static func isPlain(_ name: String) -> Bool {
        (1...longest).contains(name.utf8.count)
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
