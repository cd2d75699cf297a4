private import MartletCore

/// An object whose members keep the order in which they came.
///
/// Names are told apart by their bytes.
public struct JSONObject: Sendable, ExpressibleByDictionaryLiteral {
    /// A name and what it stands for.
    public struct Member: Sendable {
        public let name: String
        public var value: JSONValue

        public init(name: String, value: JSONValue) {
            self.name = name
            self.value = value
        }
    }

    public private(set) var members: [Member]

    /// Keeps the members as they are; of two with one name, look-ups find the first.
    public init(_ members: [(String, JSONValue)] = []) {
        self.members = members.map { Member(name: $0.0, value: $0.1) }
    }

    /// The same of members that there are already.
    public init(members: [Member]) { self.members = members }

    public init(dictionaryLiteral members: (String, JSONValue)...) { self.init(members) }

    /// The value of a member; assigning replaces it in place, appends it, or (with `nil`) removes it.
    public subscript(name: String) -> JSONValue? {
        get {
            guard let index = Self.place(of: name, in: members) else { return nil }
            return members[index].value
        }
        set {
            switch (Self.place(of: name, in: members), newValue) {
            case (let index?, let value?): members[index].value = value
            case (let index?, nil): members.remove(at: index)
            case (nil, let value?): members.append(Member(name: name, value: value))
            case (nil, nil): break
            }
        }
    }

    /// Where the first member of that name stands.
    static func place(of name: String, in members: [Member]) -> Int? {
        unsafe members.withUnsafeBufferPointer { members in
            var index = 0
            while index < members.count {
                if unsafe members[index].name.hasSameBytes(as: name) { return index }
                index &+= 1
            }
            return nil
        }
    }

    /// Whether there is a member of that name.
    public func has(_ name: String) -> Bool { Self.place(of: name, in: members) != nil }

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
