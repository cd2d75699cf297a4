internal import MartletCore

/// The head of a copy, as it is given to libcurl: texts that end with a zero byte, as C strings do.
struct MirrorHead {
    let method: [CChar]
    let target: [CChar]
    /// Field lines. libcurl writes them as they are, and leaves out its own fields of the same names.
    let lines: [[CChar]]
    let isHead: Bool

    /// - Parameter host: of the copy.
    /// - Returns: `nil` for a head that is none.
    init?(_ request: MirrorRequest, host: [UInt8]) {
        var rest = request.head[...]
        guard !request.head.contains(0), let first = Self.nextLine(&rest) else { return nil }
        let words = first.split(separator: 0x20, omittingEmptySubsequences: false)
        guard words.count == 3, !words[0].isEmpty, !words[1].isEmpty else { return nil }
        isHead = words[0].elementsEqual("HEAD".utf8)
        (method, target) = (Self.text(words[0]), Self.text(words[1]))
        var lines = [Self.text(Array("Host: ".utf8) + host)]
        // libcurl would add these on its own.
        var missing: Set<String> = ["accept", "content-type", "user-agent"]
        while let line = Self.nextLine(&rest), !line.isEmpty {
            guard let colon = line.firstIndex(of: 0x3A) else { return nil }
            let name = String(decoding: line[..<colon], as: UTF8.self)
            if request.fields.drops(name) || Self.holdsOwnToken(line) { continue }
            missing.remove(name.lowercased())
            lines.append(Self.line(line[..<colon], Self.trimmed(line[(colon + 1)...])))
        }
        lines.append(Self.text(Array(request.fields.mark.utf8)))
        for name in missing.sorted() + ["expect"] { lines.append(Self.text(Array("\(name):".utf8))) }
        self.lines = lines
    }

    /// The next line without its end.
    private static func nextLine(_ rest: inout ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        guard let end = rest.firstIndex(of: 0x0A) else { return nil }
        let line = rest[rest.startIndex..<end]
        rest = rest[(end + 1)...]
        return line.last == 0x0D ? line.dropLast() : line
    }

    /// Not even where the route forwards credentials: that is to its own upstream.
    private static func holdsOwnToken(_ line: ArraySlice<UInt8>) -> Bool {
        unsafe line.withUnsafeBufferPointer { unsafe OwnToken.appears(in: $0) }
    }

    private static func trimmed(_ value: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var value = value.drop { $0 == 0x20 || $0 == 0x09 }
        while value.last == 0x20 || value.last == 0x09 { value.removeLast() }
        return value
    }

    /// libcurl takes a name with a colon and no value as the wish to have no such field.
    private static func line(_ name: ArraySlice<UInt8>, _ value: ArraySlice<UInt8>) -> [CChar] {
        value.isEmpty ? text(name + [0x3B]) : text(name + [0x3A, 0x20] + value)
    }

    private static func text(_ bytes: some Collection<UInt8>) -> [CChar] {
        bytes.map { CChar(bitPattern: $0) } + [0]
    }
}
