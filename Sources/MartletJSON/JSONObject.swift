private import MartletCore

/// An object that preserves the order of its members. Names are compared by their bytes.
@frozen public struct JSONObject: Sendable, ExpressibleByDictionaryLiteral {
    /// A name and its value.
    @frozen public struct Member: Sendable {
        public let name: String
        public var value: JSONValue

        public init(name: String, value: JSONValue) {
            self.name = name
            self.value = value
        }
    }

    public private(set) var members: [Member]

    /// Stores the members unchanged; of duplicates, lookups find the first.
    public init(_ members: [(String, JSONValue)] = []) {
        self.members = members.map { Member(name: $0.0, value: $0.1) }
    }

    /// Stores the members unchanged.
    public init(members: [Member]) { self.members = members }

    public init(dictionaryLiteral members: (String, JSONValue)...) { self.init(members) }

    /// The value of a member; assigning replaces it in place, appends it, or (with `nil`) removes it.
    public subscript(name: String) -> JSONValue? {
        get {
            guard let index = Self.index(of: name, in: members) else { return nil }
            return members[index].value
        }
        set {
            switch (Self.index(of: name, in: members), newValue) {
            case (let index?, let value?): members[index].value = value
            case (let index?, nil): members.remove(at: index)
            case (nil, let value?): members.append(Member(name: name, value: value))
            case (nil, nil): break
            }
        }
    }

    /// The value of a member that is there and is not null.
    public func present(_ name: String) -> JSONValue? {
        guard let value = self[name], value != .null else { return nil }
        return value
    }

    /// The index of the first member with this name.
    static func index(of name: String, in members: [Member]) -> Int? {
        unsafe members.withUnsafeBufferPointer { members in
            var index = 0
            while index < members.count {
                if unsafe members[index].name.hasSameBytes(as: name) { return index }
                index &+= 1
            }
            return nil
        }
    }

    /// Whether there is a member with this name.
    public func has(_ name: String) -> Bool { Self.index(of: name, in: members) != nil }

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
