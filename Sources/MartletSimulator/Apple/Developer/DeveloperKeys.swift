private import MartletCore

/// The registered keys of developers, by their ids.
struct DeveloperKeys: Sendable {
    static let capacity = 64

    private(set) var all: [DeveloperKey] = []

    /// The key of an id; ids are compared by their bytes.
    subscript(keyID: String) -> DeveloperKey? { all.first { $0.keyID.hasSameBytes(as: keyID) } }

    /// Registers a key, in exchange for another one with its id.
    /// - Returns: whether there was room for it.
    mutating func register(_ key: DeveloperKey) -> Bool {
        _ = remove(key.keyID)
        guard all.count < Self.capacity else { return false }
        all.append(key)
        return true
    }

    /// - Returns: whether there was a key with this id.
    mutating func remove(_ keyID: String) -> Bool {
        let count = all.count
        all.removeAll { $0.keyID.hasSameBytes(as: keyID) }
        return all.count < count
    }
}
