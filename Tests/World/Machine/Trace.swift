/// What happened in a world: a hash of everything, and the text of it for a reader.
package struct Trace {
    /// A hash of every entry, in eight bytes at a time.
    package private(set) var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    package private(set) var entries = 0
    /// Prints an entry; `nil` without a reader.
    package var print: ((String) -> Void)?

    package mutating func add(_ number: Int) {
        hash = (hash ^ UInt64(truncatingIfNeeded: number)) &* 0x9e37_79b9_7f4a_7c15
        hash ^= hash >> 29
    }

    package mutating func add(_ bytes: UnsafeRawBufferPointer) {
        var offset = 0
        while offset + 8 <= bytes.count {
            add(Int(truncatingIfNeeded: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)))
            offset += 8
        }
        while offset < bytes.count {
            add(Int(bytes[offset]))
            offset += 1
        }
    }

    /// Counts an entry, and prints it for a reader.
    package mutating func note(_ text: @autoclosure () -> String) {
        entries += 1
        print?(text())
    }
}
