/// What a key has.
enum RedisValue: Equatable {
    case string([UInt8])
    case hash(RedisHash)
    case sortedSet(RedisSortedSet)

    /// As `TYPE` says it.
    var type: String {
        switch self {
        case .string: "string"
        case .hash: "hash"
        case .sortedSet: "zset"
        }
    }

    var isEmpty: Bool {
        switch self {
        case .string: false
        case .hash(let hash): hash.fields.isEmpty
        case .sortedSet(let set): set.members.isEmpty
        }
    }

    /// Changes a hash in place.
    mutating func updateHash<Result>(_ body: (inout RedisHash) -> Result) -> Result? {
        guard case .hash(var hash) = self else { return nil }
        // So that there is one owner of the fields, which are not copied then.
        self = .string([])
        defer { self = .hash(hash) }
        return body(&hash)
    }

    /// Changes a sorted set in place.
    mutating func updateSortedSet<Result>(_ body: (inout RedisSortedSet) -> Result) -> Result? {
        guard case .sortedSet(var set) = self else { return nil }
        self = .string([])
        defer { self = .sortedSet(set) }
        return body(&set)
    }
}

/// The fields of a hash, in the order in which they came: that of Redis while a hash is small.
struct RedisHash: Equatable {
    struct Field: Equatable {
        let name: [UInt8]
        var value: [UInt8]
    }

    private(set) var fields: [Field] = []

    subscript(_ name: [UInt8]) -> [UInt8]? { fields.first { $0.name == name }?.value }

    /// - Returns: whether the field is new.
    mutating func set(_ name: [UInt8], _ value: [UInt8]) -> Bool {
        if let index = fields.firstIndex(where: { $0.name == name }) {
            fields[index].value = value
            return false
        }
        fields.append(Field(name: name, value: value))
        return true
    }

    /// - Returns: whether there was one.
    mutating func remove(_ name: [UInt8]) -> Bool {
        guard let index = fields.firstIndex(where: { $0.name == name }) else { return false }
        fields.remove(at: index)
        return true
    }
}

/// The members of a sorted set, by score and then by name.
struct RedisSortedSet: Equatable {
    struct Member: Equatable {
        let name: [UInt8]
        let score: Double
    }

    private(set) var members: [Member] = []

    /// - Returns: whether the member is new.
    mutating func set(_ name: [UInt8], _ score: Double) -> Bool {
        let isNew = !remove(name)
        let index = members.firstIndex {
            score < $0.score || (score == $0.score && name.lexicographicallyPrecedes($0.name))
        }
        members.insert(Member(name: name, score: score), at: index ?? members.count)
        return isNew
    }

    /// - Returns: whether there was one.
    mutating func remove(_ name: [UInt8]) -> Bool {
        guard let index = members.firstIndex(where: { $0.name == name }) else { return false }
        members.remove(at: index)
        return true
    }
}
