/// What happened in a world: a hash of everything, and the text of it for a reader.
package struct Trace {
    /// FNV-1a over every entry.
    package private(set) var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    package private(set) var entries = 0
    /// Prints an entry; `nil` without a reader.
    package var print: ((String) -> Void)?

    package mutating func add(_ number: Int) {
        var rest = UInt64(bitPattern: Int64(number))
        for _ in 0..<8 {
            hash = (hash ^ (rest & 0xff)) &* 0x100_0000_01b3
            rest >>= 8
        }
    }

    package mutating func add(_ bytes: UnsafeRawBufferPointer) {
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    }

    package mutating func add(_ text: String) {
        for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    }

    /// Counts an entry, and prints it for a reader.
    package mutating func note(_ text: @autoclosure () -> String) {
        entries += 1
        print?(text())
    }
}
