/// The keys of a server with their values and expiry times. A copy is what a replica has, or what is left after a
/// failover.
package struct RedisData {
    struct Entry: Equatable {
        var value: RedisValue
        /// In milliseconds since 1970; the key is gone after it.
        var expiry: Int64?
    }

    /// A key's new entry; without one it was removed.
    struct Change {
        let key: RedisKey
        let entry: Entry?
    }

    /// The time of the command that is being executed: in a script it stands still.
    var now: Int64 = 0
    private var entries: [RedisKey: Entry] = [:]
    private var changed: [RedisKey] = []

    /// No keys.
    package init() {}

    /// The entry of a key that has not expired.
    func entry(_ key: RedisKey) -> Entry? {
        guard let entry = entries[key], entry.expiry.map({ now <= $0 }) ?? true else { return nil }
        return entry
    }

    /// The value of a key that has text; `nil` for others.
    package func text(_ key: String) -> String? { try? string(RedisKey(Array(key.utf8)))?.text }

    /// The names of all keys, sorted.
    package var keys: [RedisKey] { entries.keys.filter { entry($0) != nil }.sorted() }

    func string(_ key: RedisKey) throws(CommandError) -> [UInt8]? {
        switch entry(key)?.value {
        case .string(let bytes): return bytes
        case nil: return nil
        default: throw .wrongType
        }
    }

    func hash(_ key: RedisKey) throws(CommandError) -> RedisHash? {
        switch entry(key)?.value {
        case .hash(let hash): return hash
        case nil: return nil
        default: throw .wrongType
        }
    }

    func sortedSet(_ key: RedisKey) throws(CommandError) -> RedisSortedSet? {
        switch entry(key)?.value {
        case .sortedSet(let set): return set
        case nil: return nil
        default: throw .wrongType
        }
    }

    mutating func set(_ key: RedisKey, _ value: RedisValue, expiry: Int64? = nil) {
        entries[key] = Entry(value: value, expiry: expiry)
        changed.append(key)
    }

    /// Removes a key.
    /// - Returns: whether there was one.
    @discardableResult
    package mutating func remove(_ key: RedisKey) -> Bool {
        let found = entry(key) != nil
        entries[key] = nil
        if found { changed.append(key) }
        return found
    }

    /// Sets when a key expires; one that has no time left is removed.
    /// - Returns: whether there is such a key.
    mutating func setExpiry(_ key: RedisKey, _ expiry: Int64) -> Bool {
        guard entry(key) != nil else { return false }
        guard expiry > now else { return remove(key) }
        entries[key]?.expiry = expiry
        changed.append(key)
        return true
    }

    /// Changes the value of a key in place, an empty one where there is none; what is left empty is removed.
    mutating func update<Result>(
        _ key: RedisKey, orCreate empty: RedisValue, _ body: (inout RedisValue) -> Result?
    ) throws(CommandError) -> Result {
        if entry(key) == nil { entries[key] = nil }
        guard let result = body(&entries[key, default: Entry(value: empty)].value) else { throw .wrongType }
        if entries[key]?.value.isEmpty == true { entries[key] = nil }
        changed.append(key)
        return result
    }

    /// What has changed since the last call, each key once.
    mutating func takeChanges() -> [Change] {
        guard !changed.isEmpty else { return [] }
        var seen: Set<RedisKey> = []
        defer { changed.removeAll(keepingCapacity: true) }
        return changed.filter { seen.insert($0).inserted }.map { Change(key: $0, entry: entries[$0]) }
    }

    /// What another server has changed.
    mutating func apply(_ changes: [Change]) {
        for change in changes { entries[change.key] = change.entry }
    }
}
