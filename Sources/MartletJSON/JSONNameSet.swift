private import MartletCore

/// Detects duplicate member names of one object: few names are compared one by one, many are hashed.
struct JSONNameSet {
    private static let linearLimit = 16
    private var hashed: Set<Name> = []
    /// The union of the masks of all names so far: a Bloom filter.
    private var filter: UInt64 = 0

    /// Adds a name.
    ///
    /// - Parameters:
    ///   - mask: filter bits that depend on the name's bytes only.
    ///   - members: all members before this one.
    /// - Returns: `false` for a duplicate.
    mutating func insert(_ name: String, mask: UInt64, beside members: [JSONObject.Member]) -> Bool {
        if members.count < Self.linearLimit {
            let mayBeDuplicate = filter & mask != 0
            filter |= mask
            return !mayBeDuplicate || JSONObject.index(of: name, in: members) == nil
        }
        if hashed.isEmpty { for member in members { hashed.insert(Name(text: member.name)) } }
        return hashed.insert(Name(text: name)).inserted
    }

    /// A name that is compared by its bytes.
    private struct Name: Hashable {
        let text: String

        static func == (left: Name, right: Name) -> Bool { left.text.hasSameBytes(as: right.text) }

        func hash(into hasher: inout Hasher) {
            for byte in text.utf8 { hasher.combine(byte) }
        }
    }
}
