private import MartletCore

/// An object whose members keep the order in which they came.
///
/// Names are told apart by their bytes.
public struct JSONObject: Sendable, ExpressibleByDictionaryLiteral {
    public private(set) var members: [(name: String, value: JSONValue)]

    /// Keeps the members as they are; of two with one name, look-ups find the first.
    public init(_ members: [(String, JSONValue)] = []) {
        self.members = members.map { (name: $0.0, value: $0.1) }
    }

    /// - Parameter distinct: members that the parser has checked for repeated names.
    init(distinct members: [(name: String, value: JSONValue)]) { self.members = members }

    public init(dictionaryLiteral members: (String, JSONValue)...) { self.init(members) }

    /// The value of a member; assigning replaces it in place, appends it, or (with `nil`) removes it.
    public subscript(name: String) -> JSONValue? {
        get { members.first { $0.name.hasSameBytes(as: name) }?.value }
        set {
            let index = members.firstIndex { $0.name.hasSameBytes(as: name) }
            switch (index, newValue) {
            case (let index?, let value?): members[index].value = value
            case (let index?, nil): members.remove(at: index)
            case (nil, let value?): members.append((name: name, value: value))
            case (nil, nil): break
            }
        }
    }

    public var count: Int { members.count }
    public var isEmpty: Bool { members.isEmpty }
}

extension JSONObject: Equatable {
    /// Equal members in the same order.
    public static func == (left: JSONObject, right: JSONObject) -> Bool {
        left.members.count == right.members.count
            && zip(left.members, right.members).allSatisfy {
                $0.name.hasSameBytes(as: $1.name) && $0.value == $1.value
            }
    }
}
