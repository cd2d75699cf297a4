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
        let name: Range<Int>
        let source: UInt8
    }

    private var entries: [Entry] = []
    /// Their names in lower case, one after the other.
    private var letters: [UInt8] = []

    /// Adds the headers of routes that have the same providers.
    /// - Parameters:
    ///   - sources: by their indices into `all`.
    mutating func add(_ sources: [UInt8], of all: [HeaderSource]) -> Part {
        var part = Part()
        let start = Int32(clamping: entries.count)
        for source in sources {
            let name = all[Int(source)].name
            part.lengths |= Part.bit(name.count)
            entries.append(Entry(name: letters.count..<letters.count + name.count, source: source))
            letters += name
        }
        part.entries = start..<Int32(clamping: entries.count)
        return part
    }

    /// The header that a field is, letter case aside.
    func source(of field: HeadField, in bytes: Span<UInt8>, _ part: Part) -> UInt8? {
        let (all, letters, name) = (entries.span, letters.span, field.name)
        for index in part.entries {
            let entry = all[Int(index)]
            if entry.name.count == name.count, Self.spell(letters.extracting(entry.name), bytes, name) {
                return entry.source
            }
        }
        return nil
    }

    private static func spell(_ letters: Span<UInt8>, _ bytes: Span<UInt8>, _ name: ByteRange) -> Bool {
        for index in letters.indices where letters[index] != HeaderSource.lowerCase(bytes[name.start &+ index]) {
            return false
        }
        return true
    }
}
