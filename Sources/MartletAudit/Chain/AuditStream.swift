internal import MartletCore
internal import MartletCrypto

/// An instant on both clocks.
struct AuditTime: Sendable {
    let milliseconds: Int64
    let monotonic: MonotonicTime
}

/// One line as it is written.
struct OutputLine: Sendable {
    let bytes: [UInt8]
    let isHead: Bool
}

/// The lines of one destination: its chain, and when the next head is due.
///
/// It is a value: whoever could not write its lines goes on with the copy from before.
struct AuditStream: Sendable {
    private(set) var chain: AuditChain
    private(set) var schedule = HeadSchedule()
    var key: AuditKey
    /// Events that were lost since the process started.
    var lost = 0

    init(_ chain: AuditChain, key: AuditKey) {
        self.chain = chain
        self.key = key
    }

    /// The lines of events, with heads where they are due.
    mutating func lines(for bodies: [[UInt8]], at now: AuditTime) throws(CryptoError) -> [OutputLine] {
        var lines: [OutputLine] = []
        for body in bodies {
            lines.append(OutputLine(bytes: chain.append(body), isHead: false))
            schedule.added(at: now.monotonic)
            if schedule.isDue(at: now.monotonic) { lines.append(try periodicHead(at: now)) }
        }
        if bodies.isEmpty, schedule.isDue(at: now.monotonic) { lines.append(try periodicHead(at: now)) }
        return lines
    }

    private mutating func periodicHead(at now: AuditTime) throws(CryptoError) -> OutputLine {
        OutputLine(bytes: try head(AuditHead(cause: .periodic), at: now), isHead: true)
    }

    /// A head, which covers all lines before it.
    mutating func head(_ head: AuditHead, at now: AuditTime) throws(CryptoError) -> [UInt8] {
        var head = head
        head.lost = lost
        let line = try chain.append(head, by: key, at: now.milliseconds)
        schedule.signed()
        return line
    }
}
