internal import MartletCore
internal import MartletHTTP

/// The headers that are credentials, by route: every request to such a route searches it, without a reference.
struct HeaderIndex: Sendable {
    /// The headers of one route.
    struct Part: Sendable {
        /// A bit for the length of each of their names: most other fields are excluded by it.
        fileprivate(set) var lengths: UInt64 = 0
        fileprivate var entries: Range<Int32> = 0..<0

        /// Whether a field may be one of them.
        @inline(__always)
        func mayContain(_ field: HeadField) -> Bool { lengths & Part.bit(field.name.count) != 0 }

        /// The bit of a length; names of 64 bytes and more share one.
        @inline(__always)
        fileprivate static func bit(_ count: Int) -> UInt64 { 1 << UInt64(min(count, 63)) }
    }

    private struct Entry {
        let count: Int
        /// The index of its first word.
        let start: Int
        let source: UInt8
    }

    /// Eight bytes of a name.
    private struct Word {
        /// The bits that make its letters lower case, and all of those behind its end.
        var added: UInt64 = 0
        /// The bytes with these bits.
        var result: UInt64 = 0
    }

    private var entries: [Entry] = []
    /// Their names in lower case, one after the other.
    private var words: [Word] = []

    /// Adds the headers of routes that have the same providers.
    /// - Parameters:
    ///   - sources: by their indices into `all`.
    mutating func add(_ sources: [UInt8], of all: [HeaderSource]) -> Part {
        var part = Part()
        let start = Int32(clamping: entries.count)
        for source in sources {
            let name = all[Int(source)].name
            part.lengths |= Part.bit(name.count)
            entries.append(Entry(count: name.count, start: words.count, source: source))
            for first in stride(from: 0, to: name.count, by: 8) { words.append(Self.word(of: name, from: first)) }
        }
        part.entries = start..<Int32(clamping: entries.count)
        return part
    }

    private static func word(of name: [UInt8], from first: Int) -> Word {
        var word = Word()
        for offset in 0..<8 {
            let byte = first + offset < name.count ? name[first + offset] : 0xFF
            let isLetter = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
            word.added |= (byte == 0xFF ? 0xFF : isLetter ? 0x20 : 0) << (offset * 8)
            word.result |= UInt64(byte) << (offset * 8)
        }
        return word
    }

    /// The header that a field is, letter case aside.
    func source(of field: HeadField, in bytes: Span<UInt8>, _ part: Part) -> UInt8? {
        let (all, words, name) = (entries.span, words.span, field.name)
        for index in part.entries {
            let entry = all[Int(index)]
            if entry.count == name.count, Self.spell(words, from: entry.start, bytes, name) { return entry.source }
        }
        return nil
    }

    @inline(__always)
    private static func spell(
        _ words: Span<Word>, from start: Int, _ bytes: Span<UInt8>, _ name: ByteRange
    ) -> Bool {
        var (index, offset) = (start, name.start)
        while offset < name.end {
            let word = words[index]
            guard Self.word(bytes, at: offset) | word.added == word.result else { return false }
            (index, offset) = (index &+ 1, offset &+ 8)
        }
        return true
    }

    /// Eight bytes, or those up to the end.
    @inline(__always)
    private static func word(_ bytes: Span<UInt8>, at start: Int) -> UInt64 {
        if start &+ 8 <= bytes.count {
            return unsafe bytes.bytes.unsafeLoadUnaligned(fromByteOffset: start, as: UInt64.self)
        }
        var word: UInt64 = 0
        for index in start..<bytes.count { word |= UInt64(bytes[index]) << ((index &- start) &* 8) }
        return word
    }
}
