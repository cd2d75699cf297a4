/// Operations on eight bytes at a time; the first byte is the lowest of the word.
enum ByteWord {
    private static let ones: UInt64 = 0x0101_0101_0101_0101
    private static let highBits: UInt64 = 0x8080_8080_8080_8080

    /// A mask with the high bit set in each byte of the word that equals `byte`; exact for all bytes.
    @inline(__always)
    static func matches(of byte: UInt8, in word: UInt64) -> UInt64 {
        let rest = word ^ (ones &* UInt64(byte))
        return ~(((rest & ~highBits) &+ ~highBits) | rest | ~highBits)
    }

    /// The word with A–Z mapped to a–z.
    @inline(__always)
    static func lowercased(_ word: UInt64) -> UInt64 {
        let low = word & ~highBits
        let fromA = low &+ ones &* (0x80 - 0x41)
        let beyondZ = low &+ ones &* (0x80 - 0x5B)
        let isUpper = fromA & ~beyondZ & ~word & highBits
        return word | isUpper &>> 2
    }

    /// The first `count` bytes of the word, followed by zeros.
    @inline(__always)
    static func prefix(_ word: UInt64, _ count: Int) -> UInt64 {
        count >= 8 ? word : word & (1 &<< UInt64(truncatingIfNeeded: count &* 8) &- 1)
    }
}

extension Span<UInt8> {
    /// The eight bytes at `offset`, with zeros after the end; `offset` must not be negative.
    @inline(__always)
    func word(at offset: Int) -> UInt64 {
        unsafe withUnsafeBufferPointer { bytes in
            guard let base = bytes.baseAddress, offset < bytes.count else { return 0 }
            let raw = unsafe UnsafeRawPointer(base)
            if bytes.count &- offset >= 8 {
                return unsafe UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
            }
            return unsafe Self.lastWord(raw, offset, bytes.count)
        }
    }

    /// Like `word(at:)` where fewer than eight bytes are left; never reads outside the span.
    @inline(__always)
    private static func lastWord(_ raw: UnsafeRawPointer, _ offset: Int, _ count: Int) -> UInt64 {
        if count >= 8 {
            let word = unsafe UInt64(littleEndian: raw.loadUnaligned(fromByteOffset: count &- 8, as: UInt64.self))
            return word &>> UInt64(truncatingIfNeeded: (offset &+ 8 &- count) &* 8)
        }
        return unsafe shortWord(raw, count) &>> UInt64(truncatingIfNeeded: offset &* 8)
    }

    /// All bytes of a run of up to seven, by two loads that may overlap with equal bytes.
    @inline(__always)
    private static func shortWord(_ raw: UnsafeRawPointer, _ count: Int) -> UInt64 {
        if count >= 4 {
            let low = unsafe UInt32(littleEndian: raw.loadUnaligned(as: UInt32.self))
            let high = unsafe UInt32(littleEndian: raw.loadUnaligned(fromByteOffset: count &- 4, as: UInt32.self))
            return UInt64(low) | UInt64(high) &<< UInt64(truncatingIfNeeded: count &* 8 &- 32)
        }
        if count >= 2 {
            let low = unsafe UInt16(littleEndian: raw.loadUnaligned(as: UInt16.self))
            let high = unsafe UInt16(littleEndian: raw.loadUnaligned(fromByteOffset: count &- 2, as: UInt16.self))
            return UInt64(low) | UInt64(high) &<< UInt64(truncatingIfNeeded: count &* 8 &- 16)
        }
        return count == 1 ? UInt64(unsafe raw.load(as: UInt8.self)) : 0
    }
}

/// A hash of words for tables that contain only configured keys, so that clients cannot add colliding ones.
struct WordHash {
    private(set) var value: UInt64

    init(seed: UInt64) { value = seed &* 0x9e37_79b9_7f4a_7c15 }

    /// Adds a word. After equal prefixes, different words give different values.
    ///
    /// Multiplication by an odd number is invertible, and so is xorshift.
    @inline(__always)
    mutating func add(_ word: UInt64) {
        let product = (value ^ word) &* 0xd6e8_feb8_6659_fd93
        value = product ^ (product &>> 32)
    }

    /// The hash of a text given as words.
    init(seed: UInt64, of words: some Sequence<UInt64>) {
        self.init(seed: seed)
        for word in words { add(word) }
    }
}

/// Concatenated texts as words, each padded with zeros, for comparing without a loop over bytes.
struct WordPool: Sendable {
    private(set) var words: [UInt64] = []

    /// Appends a text.
    /// - Returns: the index of its first word.
    mutating func add(_ text: some Collection<UInt8>) -> Int {
        let start = words.count
        words += Self.words(of: text)
        return start
    }

    /// A text as words.
    static func words(of text: some Collection<UInt8>) -> [UInt64] {
        let bytes = Array(text)
        return stride(from: 0, to: bytes.count, by: 8).map { bytes.span.word(at: $0) }
    }
}
