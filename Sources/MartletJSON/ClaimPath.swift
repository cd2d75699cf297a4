/// A claim as a configuration names it: by its name, or as a list of names, each a member of the object before it.
///
/// A name with dots is one name: claims of several issuers are URLs.
public struct ClaimPath: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// The name of the claim.
    public let name: String
    /// The names of members below it; empty for the claim itself.
    public let members: [String]

    /// The claim with this name.
    public init(_ name: String, _ members: String...) {
        self.name = name
        self.members = members
    }

    public init(stringLiteral value: String) { self.init(value) }

    /// The member at the end of these names.
    /// - Returns: `nil` without a name.
    public init?(_ names: [String]) {
        guard let first = names.first else { return nil }
        name = first
        members = Array(names.dropFirst())
    }

    /// Whether it is a member of a claim.
    public var isNested: Bool { !members.isEmpty }

    /// What claims have at a path.
    package enum Lookup {
        case found(JSONValue)
        /// There is no such claim, or no such member.
        case absent
        /// Something on the way is neither an object nor null.
        case blocked
    }

    /// The value; `nil` if there is none, and where something on the way is not an object.
    public func value(in claims: JSONObject) -> JSONValue? {
        if case .found(let value) = lookup(in: claims) { value } else { nil }
    }

    /// The value, or why there is none.
    package func lookup(in claims: JSONObject) -> Lookup {
        var value = claims[name]
        for member in members {
            switch value {
            case .object(let object)?: value = object[member]
            case nil, .null?: return .absent
            default: return .blocked
            }
        }
        return value.map { .found($0) } ?? .absent
    }

    /// As it is written in the file: `roles`, or `[realm_access, roles]`.
    public var description: String {
        isNested ? "[\(([name] + members).joined(separator: ", "))]" : name
    }
}
