/// What the bytes of a shared library say about it, as the dynamic loader reads them: no section headers, which a
/// stripped or forged file need not have.
///
/// Loading runs constructors as the user of `martlet check`, and fails without naming versions where symbols are
/// missing; a second copy of Swift's library is loaded without an error. The bytes tell before any code runs.
package struct ELFLibrary: Equatable {
    /// Libraries that it asks for (`DT_NEEDED`).
    package private(set) var needed: [String] = []
    /// Symbols that it defines for others.
    package private(set) var defined: [String] = []
    /// Symbols that it takes from others and cannot do without.
    package private(set) var undefined: [String] = []
    /// The descriptions of its notes named `Martlet`, of type 1.
    package private(set) var notes: [[UInt8]] = []

    /// The machines that can be asked for.
    package enum Machine: UInt16, Sendable {
        case x86_64 = 62
        case aarch64 = 183

        /// The machine that this program was compiled for.
        package static var current: Machine {
            #if arch(arm64)
            .aarch64
            #else
            .x86_64
            #endif
        }
    }

    /// How much is read of a file at most.
    private enum Limit {
        static let segments = 256
        static let entries = 4096
        static let symbols = 1 << 20
        static let notes = 256
    }

    /// One part of the file that is mapped into memory.
    private struct Segment {
        let type: UInt32
        let offset: Int
        let address: Int
        let size: Int
        var end: Int { offset &+ size }
    }

    /// - Parameter machine: the only one that is accepted.
    package init(_ bytes: [UInt8], for machine: Machine = .current) throws(ELFError) {
        let file = ELFBytes(bytes: bytes)
        try Self.checkHeader(file, machine)
        let segments = try Self.segments(file)
        for segment in segments where segment.type == 4 { try readNotes(file, segment) }
        guard let dynamic = segments.first(where: { $0.type == 2 }) else {
            throw ELFError(kind: .wrongArchitecture, offset: 32, reason: "it has no dynamic section")
        }
        try readDynamic(file, dynamic, segments.filter { $0.type == 1 })
    }

    private static func checkHeader(_ file: ELFBytes, _ machine: Machine) throws(ELFError) {
        guard file.bytes.starts(with: [0x7F, 0x45, 0x4C, 0x46]) else {
            throw ELFError(kind: .notELF, offset: 0, reason: "it does not begin like an ELF file")
        }
        guard try file.number(UInt8.self, at: 4, "the header") == 2 else {
            throw ELFError(kind: .wrongArchitecture, offset: 4, reason: "it is not a 64-bit file")
        }
        guard try file.number(UInt8.self, at: 5, "the header") == 1 else {
            throw ELFError(kind: .wrongArchitecture, offset: 5, reason: "it is not a little-endian file")
        }
        let found = try file.number(UInt16.self, at: 18, "the header")
        guard found == machine.rawValue else {
            let name = Machine(rawValue: found).map { "\($0)" } ?? "machine \(found)"
            throw ELFError(
                kind: .wrongArchitecture, offset: 18, reason: "it is for \(name), and this gateway for \(machine)")
        }
        guard try file.number(UInt16.self, at: 16, "the header") == 3 else {
            throw ELFError(kind: .wrongArchitecture, offset: 16, reason: "it is not a shared library")
        }
    }

    private static func segments(_ file: ELFBytes) throws(ELFError) -> [Segment] {
        let start = try file.size(at: 32, "the header")
        let size = Int(try file.number(UInt16.self, at: 54, "the header"))
        let count = Int(try file.number(UInt16.self, at: 56, "the header"))
        guard size == 56, count <= Limit.segments else {
            throw ELFError(kind: .damaged, offset: 54, reason: "its program headers have an impossible size")
        }
        var found: [Segment] = []
        for index in 0..<count {
            let header = start &+ index &* size
            let segment = Segment(
                type: try file.number(UInt32.self, at: header, "a program header"),
                offset: try file.size(at: header &+ 8, "a program header"),
                address: try file.size(at: header &+ 16, "a program header"),
                size: try file.size(at: header &+ 32, "a program header"))
            // 1 PT_LOAD, 2 PT_DYNAMIC, 4 PT_NOTE.
            guard [1, 2, 4].contains(segment.type) else { continue }
            guard segment.end <= file.bytes.count else {
                throw ELFError(kind: .damaged, offset: header, reason: "the file ends within a segment")
            }
            found.append(segment)
        }
        return found
    }
}

// MARK: Notes

extension ELFLibrary {
    private mutating func readNotes(_ file: ELFBytes, _ segment: Segment) throws(ELFError) {
        var offset = segment.offset
        while segment.end &- offset >= 12, notes.count < Limit.notes {
            let nameSize = Int(try file.number(UInt32.self, at: offset, "a note"))
            let size = Int(try file.number(UInt32.self, at: offset &+ 4, "a note"))
            let type = try file.number(UInt32.self, at: offset &+ 8, "a note")
            let name = offset &+ 12
            let description = name &+ Self.aligned(nameSize)
            let end = description &+ size
            guard end <= segment.end else {
                throw ELFError(kind: .damaged, offset: offset, reason: "a note is longer than its segment")
            }
            if type == 1, file.bytes[name..<name &+ nameSize].elementsEqual("Martlet\0".utf8) {
                notes.append(Array(file.bytes[description..<end]))
            }
            offset = description &+ Self.aligned(size)
        }
    }

    private static func aligned(_ size: Int) -> Int { (size &+ 3) & ~3 }
}

// MARK: The dynamic section

extension ELFLibrary {
    /// The entries of a dynamic section that matter here.
    private struct Dynamic {
        var needed: [Int] = []
        var strings: Int?
        var stringSize = 0
        var symbols: Int?
        var gnuHash: Int?
        var hash: Int?
    }

    private mutating func readDynamic(
        _ file: ELFBytes, _ segment: Segment, _ loaded: [Segment]
    ) throws(ELFError) {
        let dynamic = try Self.entries(file, segment)
        guard let strings = dynamic.strings.flatMap({ Self.offset(of: $0, loaded) }),
            let symbols = dynamic.symbols.flatMap({ Self.offset(of: $0, loaded) })
        else {
            throw ELFError(kind: .damaged, offset: segment.offset, reason: "its dynamic section has no symbols")
        }
        let end = strings &+ dynamic.stringSize
        for name in dynamic.needed {
            guard let text = file.text(at: strings &+ name, before: end) else {
                throw ELFError(kind: .damaged, offset: strings, reason: "the name of a needed library has no end")
            }
            needed.append(text)
        }
        let count: Int
        if let table = dynamic.gnuHash.flatMap({ Self.offset(of: $0, loaded) }) {
            count = try Self.countByGNUHash(file, table)
        } else if let table = dynamic.hash.flatMap({ Self.offset(of: $0, loaded) }) {
            count = Int(try file.number(UInt32.self, at: table &+ 4, "the hash table"))
        } else {
            throw ELFError(kind: .damaged, offset: segment.offset, reason: "its symbols have no hash table")
        }
        guard count <= Limit.symbols else {
            throw ELFError(kind: .damaged, offset: symbols, reason: "it has more than \(Limit.symbols) symbols")
        }
        for index in stride(from: 1, to: count, by: 1) {
            try readSymbol(file, at: symbols &+ index &* 24, strings, end)
        }
    }

    private mutating func readSymbol(
        _ file: ELFBytes, at offset: Int, _ strings: Int, _ end: Int
    ) throws(ELFError) {
        let name = Int(try file.number(UInt32.self, at: offset, "the symbol table"))
        let info = try file.number(UInt8.self, at: offset &+ 4, "the symbol table")
        let visibility = try file.number(UInt8.self, at: offset &+ 5, "the symbol table") & 3
        let section = try file.number(UInt16.self, at: offset &+ 6, "the symbol table")
        guard let text = file.text(at: strings &+ name, before: end) else {
            throw ELFError(kind: .damaged, offset: offset, reason: "the name of a symbol has no end")
        }
        let binding = info >> 4
        if section == 0 {
            // A weak symbol may stay undefined.
            if binding == 1, !text.isEmpty { undefined.append(text) }
        } else if binding == 1 || binding == 2 || binding == 10, visibility == 0 || visibility == 3 {
            defined.append(text)
        }
    }

    private static func entries(_ file: ELFBytes, _ segment: Segment) throws(ELFError) -> Dynamic {
        var dynamic = Dynamic()
        for index in 0..<min(segment.size / 16, Limit.entries) {
            let offset = segment.offset &+ index &* 16
            let tag = try file.number(UInt64.self, at: offset, "the dynamic section")
            switch tag {
            case 0: return dynamic
            case 1: dynamic.needed.append(try file.size(at: offset &+ 8, "the dynamic section"))
            case 4: dynamic.hash = try file.size(at: offset &+ 8, "the dynamic section")
            case 5: dynamic.strings = try file.size(at: offset &+ 8, "the dynamic section")
            case 6: dynamic.symbols = try file.size(at: offset &+ 8, "the dynamic section")
            case 10: dynamic.stringSize = try file.size(at: offset &+ 8, "the dynamic section")
            case 0x6FFF_FEF5: dynamic.gnuHash = try file.size(at: offset &+ 8, "the dynamic section")
            default: continue
            }
        }
        return dynamic
    }

    /// The place in the file of what is at an address when it is loaded.
    private static func offset(of address: Int, _ loaded: [Segment]) -> Int? {
        for segment in loaded where address >= segment.address && address &- segment.address < segment.size {
            return segment.offset &+ (address &- segment.address)
        }
        return nil
    }

    /// The number of symbols: the hash table lists those that are defined, which come last.
    private static func countByGNUHash(_ file: ELFBytes, _ table: Int) throws(ELFError) -> Int {
        let buckets = Int(try file.number(UInt32.self, at: table, "the hash table"))
        let first = Int(try file.number(UInt32.self, at: table &+ 4, "the hash table"))
        let filter = Int(try file.number(UInt32.self, at: table &+ 8, "the hash table"))
        guard buckets <= Limit.symbols, first <= Limit.symbols, filter <= Limit.symbols else {
            throw ELFError(kind: .damaged, offset: table, reason: "the hash table has an impossible size")
        }
        let bucketTable = table &+ 16 &+ filter &* 8
        var last = 0
        for index in 0..<buckets {
            last = max(last, Int(try file.number(UInt32.self, at: bucketTable &+ index &* 4, "the hash table")))
        }
        guard last >= first else { return first }
        let chains = bucketTable &+ buckets &* 4
        while last <= Limit.symbols {
            let hash = try file.number(UInt32.self, at: chains &+ (last &- first) &* 4, "the hash table")
            last &+= 1
            if hash & 1 == 1 { return last }
        }
        throw ELFError(kind: .damaged, offset: chains, reason: "the hash table has no end")
    }
}
