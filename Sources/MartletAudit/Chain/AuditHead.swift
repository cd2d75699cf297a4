/// Why a head is written.
package enum HeadCause: String, Sendable, CaseIterable {
    /// A new file begins: its first line.
    case start
    /// A process goes on with the file of another one.
    case resume
    /// The same, behind a line that was not written to its end.
    case torn
    /// So many lines, or so much time, since the last head.
    case periodic
    /// The last line of a file, before the next one begins.
    case rotation
    /// The log ends in order.
    case end
    /// The key that signs has changed.
    case key
}

/// What a head says beyond its place in the chain.
struct AuditHead: Equatable {
    var cause: HeadCause
    /// Whether it is the first line of a file.
    var opens = false
    /// Events that were lost since the process started.
    var lost = 0
    /// The hash of what was not written to its end before it.
    var torn: String?
    /// The public key.
    var key = ""
    var signature: [UInt8] = []
    /// The bytes of the line, from its first, that are signed.
    var signedBytes = 0
}
