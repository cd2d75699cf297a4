internal import MartletCore

/// Where a chain goes on in a file that exists.
struct AuditTail: Equatable {
    /// As many bytes of the end are read: more than the longest line, and one that was not written to its end.
    static let bytes = 3 * AuditLine.maximumBytes

    let chain: AuditChain
    /// The hash of what was not written to its end; `nil` if the file ends in order.
    var torn: String?
    /// Whether the file does not end with a line break.
    var needsBreak = false

    /// - Parameter end: the last bytes of the file, or all of it.
    /// - Returns: `nil` if they have no line of a log.
    init?(_ end: [UInt8]) {
        var lines = end.split(separator: 0x0A, omittingEmptySubsequences: false).map { Array($0) }
        let isBroken = lines.last?.isEmpty == false
        if !isBroken { lines.removeLast() }
        var rest: [[UInt8]] = []
        while let bytes = lines.popLast() {
            guard let line = AuditLine(bytes) else {
                rest.append(bytes)
                continue
            }
            chain = AuditChain(name: line.chain, sequence: line.sequence &+ 1, last: AuditChain.hash(bytes))
            needsBreak = isBroken
            torn = rest.isEmpty ? nil : AuditChain.hash(Self.joined(rest.reversed()))
            return
        }
        return nil
    }

    /// The bytes of several lines, with line breaks between them.
    static func joined(_ lines: [[UInt8]]) -> [UInt8] { Array(lines.joined(separator: [0x0A])) }
}
