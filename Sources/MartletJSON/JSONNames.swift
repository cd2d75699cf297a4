private import MartletCore

/// The member names that one object has had so far.
///
/// Few are compared one by one, many are hashed.
struct JSONNames {
    private static let few = 16
    private var hashed: Set<Name> = []
    /// The marks of all names so far.
    private var marks: UInt64 = 0

    /// Takes note of a name; `false` when `members`, which holds all before it, has it already.
    ///
    /// - Parameter mark: bits that depend on the name's bytes alone: where none is known, it is another name.
    mutating func insert(_ name: String, mark: UInt64, beside members: [JSONObject.Member]) -> Bool {
        if members.count < Self.few {
            let mayBeKnown = marks & mark != 0
            marks |= mark
            return !mayBeKnown || JSONObject.place(of: name, in: members) == nil
        }
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
