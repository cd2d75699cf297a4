internal import MartletCore
internal import MartletJSON
internal import MartletProvider

extension Principal {
    /// About how many bytes a principal takes in memory.
    var weight: Int { 512 + subject.utf8.count + identity.claims.weight }
}

extension JSONObject {
    /// A member, with its name and its value, takes at least so much.
    private static let memberBytes = 64

    fileprivate var weight: Int {
        members.reduce(0) { $0 + JSONObject.memberBytes + $1.name.utf8.count + $1.value.weight }
    }
}

extension JSONValue {
    private static let elementBytes = 32

    /// What it takes beside its place; depth is bounded by the parser.
    fileprivate var weight: Int {
        switch self {
        case .null, .bool, .number: JSONValue.elementBytes
        case .string(let text): text.utf8.count
        case .array(let elements): elements.reduce(0) { $0 + JSONValue.elementBytes + $1.weight }
        case .object(let object): object.weight
        }
    }
}
