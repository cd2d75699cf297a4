/// Divides bytes into lines, whatever pieces they come in.
package struct LineSplitter {
    private let maximumBytes: Int
    private var line: [UInt8] = []

    /// - Parameter maximumBytes: of a longer line, only the beginning is kept, and one byte more.
    package init(maximumBytes: Int) { self.maximumBytes = maximumBytes }

    /// What follows the last line break; `nil` if that is nothing.
    package var rest: [UInt8]? { line.isEmpty ? nil : line }

    /// Adds bytes, and passes on each line that they complete.
    package mutating func add(_ bytes: ArraySlice<UInt8>, _ take: ([UInt8]) -> Void) {
        var rest = bytes
        while let end = rest.firstIndex(of: 0x0A) {
            keep(rest[..<end])
            take(line)
            line.removeAll(keepingCapacity: true)
            rest = rest[(end + 1)...]
        }
        keep(rest)
    }

    private mutating func keep(_ bytes: ArraySlice<UInt8>) {
        line += bytes.prefix(max(maximumBytes + 1 - line.count, 0))
    }
}
