private import MartletCore

/// The member names that one object has had so far.
///
/// Few are compared one by one, many are hashed.
struct JSONNames {
    private static let few = 16
    private var hashed: Set<Name> = []

    /// Takes note of a name; `false` when `members`, which holds all before it, has it already.
    mutating func insert(_ name: String, beside members: [JSONObject.Member]) -> Bool {
        if members.count < Self.few { return JSONObject.place(of: name, in: members) == nil }
        if hashed.isEmpty { for member in members { hashed.insert(Name(text: member.name)) } }
        return hashed.insert(Name(text: name)).inserted
    }

    /// A text that is told apart by its bytes.
    private struct Name: Hashable {
        let text: String

        static func == (left: Name, right: Name) -> Bool { left.text.hasSameBytes(as: right.text) }

        func hash(into hasher: inout Hasher) {
            for byte in text.utf8 { hasher.combine(byte) }
        }
    }
}
