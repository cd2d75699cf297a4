private import MartletHTTP

/// The path of a `return_to` in one of its spellings: as it was sent, or after decoding.
struct ReturnPath {
    private let bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The spellings after each decoding, beginning with the path as it was sent; `nil` if the path has an escape that
    /// is none, or still changes after the last decoding that is allowed.
    ///
    /// A server between the browser and the gateway may decode a path once more than the browser does.
    static func spellings(of path: [UInt8]) -> [ReturnPath]? {
        guard hasOnlyEscapes(path) else { return nil }
        var spellings = [ReturnPath(path)]
        var current = path
        for _ in 0..<maximumDecodings {
            let next = decoded(current)
            if next.count == current.count { return spellings }
            spellings.append(ReturnPath(next))
            current = next
        }
        return nil
    }

    private static let maximumDecodings = 4

    /// Whether a browser and a server read the same path: one slash at its start, text only, and no segments that are
    /// resolved.
    var isPlain: Bool {
        guard bytes.first == UInt8(ascii: "/"), bytes.count < 2 || bytes[1] != UInt8(ascii: "/"),
            !bytes.contains(where: { $0 < 0x20 || $0 == 0x7F || $0 == UInt8(ascii: "\\") }),
            let text = String(validating: bytes, as: UTF8.self)
        else { return false }
        let hasControls = text.unicodeScalars.contains { (0x80...0x9F).contains($0.value) }
        return !hasControls && !CompatibilityForms.areAmbiguous(text.unicodeScalars)
            && !segments.contains { $0.elementsEqual(".".utf8) || $0.elementsEqual("..".utf8) }
    }

    /// Whether the path is below one of others, whatever its letter case, parameters and repeated slashes.
    /// - Parameter others: segments in lower case.
    func isBelow(_ others: [[[UInt8]]]) -> Bool {
        let mine = segments.filter { !$0.isEmpty }.map { $0.map(\.loweredASCII) }
        return others.contains { other in mine.count >= other.count && Array(mine[..<other.count]) == other }
    }

    /// What stands between slashes, without parameters; a decoded path may have a query in it.
    private var segments: [ArraySlice<UInt8>] {
        bytes.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            .map { $0.prefix { !";?#".utf8.contains($0) } }
    }

    /// The segments of a path of the configuration, for ``isBelow(_:)``.
    static func segments(of path: String) -> [[UInt8]] {
        path.utf8.split(separator: UInt8(ascii: "/")).map { $0.map(\.loweredASCII) }
    }

    private static func hasOnlyEscapes(_ path: [UInt8]) -> Bool {
        path.indices.allSatisfy { path[$0] != UInt8(ascii: "%") || URLEscaping.value(path, at: $0) != nil }
    }

    private static func decoded(_ path: [UInt8]) -> [UInt8] {
        var decoded: [UInt8] = []
        decoded.reserveCapacity(path.count)
        var index = 0
        while index < path.count {
            if let value = URLEscaping.value(path, at: index) {
                decoded.append(value)
                index += 3
            } else {
                decoded.append(path[index])
                index += 1
            }
        }
        return decoded
    }
}
