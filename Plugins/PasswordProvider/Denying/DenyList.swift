/// Why a list of denied passwords cannot be used.
struct DenyListError: Error, Sendable, Equatable, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }

    /// A line that is not a digest.
    static func malformed(at offset: Int64) -> DenyListError {
        DenyListError(
            "the line at byte \(offset) is not a SHA-1 digest of as many hexadecimal digits as the first line")
    }

    /// A line that sorts before an earlier one.
    static func unsorted(at offset: Int64) -> DenyListError {
        DenyListError("it is not sorted: the line at byte \(offset) belongs before an earlier one")
    }
}

/// The bytes of a list, read at any position.
protocol DenyListBytes: Sendable {
    /// In bytes.
    var size: Int64 { get }
    /// Up to `count` bytes at an offset; fewer at the end only.
    func read(at offset: Int64, count: Int) throws(DenyListError) -> [UInt8]
}

/// A sorted list of SHA-1 digests, one a line as `digest` or `digest:count`: the form of the known lists of breached
/// passwords.
///
/// Found by binary search over byte offsets, in constant memory, whatever the size of the list. All lines have the
/// number of digits of the first one, because lists may be cut to prefixes of their digests.
struct DenyList<Bytes: DenyListBytes>: Sendable {
    /// The fewest digits of a line: 64 bits, which no other password has by chance.
    private static var fewestDigits: Int { 16 }
    private static var mostDigits: Int { 40 }
    /// Of one line: the digits, a colon, a count of up to 20 digits, CR and LF.
    private static var longestLine: Int { 64 }
    /// Lists up to this size are checked line by line, longer ones at `samples` offsets.
    private static var wholeCheck: Int64 { 1 << 20 }
    private static var samples: Int64 { 1024 }

    let bytes: Bytes
    /// The hexadecimal digits of each line.
    let width: Int

    /// Reads enough of a list to tell whether it is one.
    init(_ bytes: Bytes) throws(DenyListError) {
        guard bytes.size > 0 else { throw DenyListError("it is empty") }
        let start = try bytes.read(at: 0, count: Self.mostDigits + 1)
        let width = start.prefix { Self.value(of: $0) != nil }.count
        guard (Self.fewestDigits...Self.mostDigits).contains(width) else { throw .malformed(at: 0) }
        self.bytes = bytes
        self.width = width
        try checkOrder()
    }

    /// Whether a digest is on the list.
    /// - Parameter digest: the 20 bytes of a SHA-1.
    func contains(_ digest: [UInt8]) throws(DenyListError) -> Bool {
        let wanted = digest.flatMap { [$0 >> 4, $0 & 15] }.prefix(width)
        var (low, high) = (Int64(0), bytes.size)
        while low < high {
            let middle = low + (high - low) / 2
            guard let line = try line(from: middle) else {
                high = middle
                continue
            }
            if line.digits.elementsEqual(wanted) { return true }
            if line.digits.lexicographicallyPrecedes(wanted) { low = line.end } else { high = middle }
        }
        return false
    }

    private struct Line {
        let start: Int64
        /// Where the next one starts.
        let end: Int64
        /// The values of its digits.
        let digits: [UInt8]
    }

    /// The first line that starts at an offset or after it; `nil` after the last one.
    private func line(from offset: Int64) throws(DenyListError) -> Line? {
        // The byte before tells whether a line starts here.
        let first = max(offset - 1, 0)
        let window = try bytes.read(at: first, count: 2 * Self.longestLine)
        var rest = window[...]
        if offset > 0 {
            guard let end = rest.firstIndex(of: UInt8(ascii: "\n")) else {
                // The last line, which does not end in a newline, or one that is too long.
                guard first + Int64(window.count) >= bytes.size else { throw .malformed(at: offset) }
                return nil
            }
            rest = rest[(end + 1)...]
        }
        let start = first + Int64(rest.startIndex)
        guard start < bytes.size else { return nil }
        let text = rest.prefix { $0 != UInt8(ascii: "\n") }
        let isComplete = text.endIndex < rest.endIndex
        guard isComplete || first + Int64(window.count) >= bytes.size, text.count <= Self.longestLine,
            let digits = digits(of: text)
        else { throw .malformed(at: start) }
        return Line(start: start, end: start + Int64(text.count) + (isComplete ? 1 : 0), digits: digits)
    }

    /// The values of a line's digits; `nil` if it is not a line of the list.
    private func digits(of text: ArraySlice<UInt8>) -> [UInt8]? {
        let digits = text.prefix(width).compactMap(Self.value)
        var rest = text.dropFirst(width)
        if rest.last == UInt8(ascii: "\r") { rest = rest.dropLast() }
        guard digits.count == width else { return nil }
        guard let colon = rest.first else { return digits }
        let count = rest.dropFirst()
        guard colon == UInt8(ascii: ":"), !count.isEmpty,
            count.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
        else { return nil }
        return digits
    }

    /// Checks that the lines ascend: all of a short list, samples and the last line of a long one.
    private func checkOrder() throws(DenyListError) {
        var last: Line?
        var offset: Int64 = 0
        while let line = try line(from: offset) {
            if let last, line.digits.lexicographicallyPrecedes(last.digits) { throw .unsorted(at: line.start) }
            last = line
            offset = bytes.size <= Self.wholeCheck ? line.end : max(line.end, line.start + bytes.size / Self.samples)
        }
        guard bytes.size > Self.wholeCheck, let last else { return }
        // The last line begins within this distance of the end.
        guard let end = try lastLine() else { throw .malformed(at: last.end) }
        if end.digits.lexicographicallyPrecedes(last.digits) { throw .unsorted(at: end.start) }
    }

    private func lastLine() throws(DenyListError) -> Line? {
        var found: Line?
        var offset = max(bytes.size - Int64(2 * Self.longestLine), 0)
        while let line = try line(from: offset) {
            found = line
            offset = line.end
        }
        return found
    }

    private static func value(of digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit &- 48
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit &- 87
        case UInt8(ascii: "A")...UInt8(ascii: "F"): digit &- 55
        default: nil
        }
    }
}
