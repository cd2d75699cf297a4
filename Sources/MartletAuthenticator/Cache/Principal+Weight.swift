internal import MartletCore
internal import MartletJSON
internal import MartletProvider

extension Principal {
    /// Approximate memory size of a principal in bytes.
    var weight: Int { 512 + subject.utf8.count + identity.claims.weight }
}

extension JSONObject {
    /// Minimum size of a member with its name and its value.
    private static let memberBytes = 64

    fileprivate var weight: Int {
        members.reduce(0) { $0 + JSONObject.memberBytes + $1.name.utf8.count + $1.value.weight }
    }
}

extension JSONValue {
    private static let elementBytes = 32

    /// The size beyond the value's own storage; depth is bounded by the parser.
    fileprivate var weight: Int {
        switch self {
        case .null, .bool, .number: JSONValue.elementBytes
        case .string(let text): text.utf8.count
        case .array(let elements): elements.reduce(0) { $0 + JSONValue.elementBytes + $1.weight }
        case .object(let object): object.weight
        }
    }
}
