internal import MartletCore
package import MartletCrypto

/// Verifies the files of an audit log line by line: numbers, hashes and signatures.
///
/// It stops at the first line that is not in order, and looks further only to say what happened to it.
package struct AuditVerifier {
    /// What has to come next.
    private struct Expected {
        var chain: AuditChain
        /// The line before has this hash of the one before it.
        var beforeLast: String
    }

    /// A line that is not in order, while what happened to it is not clear.
    private enum Suspicion {
        /// Lines from this number on are missing here.
        case gap(line: Int, missing: Int64, chain: String)
        /// The hash in a line is not that of the line before it.
        case mismatch(line: Int, previous: String, hash: String, sequence: Int64)
    }

    /// Whose signatures count; any that is named in a head if empty.
    private let trusted: [PublicKey]
    private let wantedHead: String?
    private var foundHead = false

    private var file = ""
    private var line = 0
    /// Whether no line of this file has been read.
    private var isFirst = true
    private var files = 0
    private var expected: Expected?
    private var fragment: [[UInt8]] = []
    /// With line breaks.
    private var fragmentBytes = 0
    private var suspicion: Suspicion?
    private var known: [String: PublicKey] = [:]
    private var result = AuditResult()

    /// - Parameters:
    ///   - trusted: the keys whose heads count; empty accepts the ones that the heads name.
    ///   - wantedHead: the hash of a head that has to be there.
    package init(trusting trusted: [PublicKey], wantedHead: String? = nil) {
        self.trusted = trusted
        self.wantedHead = wantedHead
        for key in trusted { if let name = key.auditName { known[name] = key } }
    }

    /// Whether nothing that follows can change the result.
    package var isDecided: Bool { result.finding != nil }

    /// Begins the next file, in the order in which they were written.
    package mutating func begin(file name: String) {
        endFile()
        (file, line, isFirst) = (name, 0, true)
        files += 1
    }

    /// Takes the next line.
    /// - Parameter isTerminated: whether a line break follows it.
    package mutating func take(_ bytes: [UInt8], isTerminated: Bool = true) {
        guard !isDecided else { return }
        line += 1
        if let suspicion { return resolve(suspicion, by: bytes) }
        guard isTerminated else { return find(.torn, at: line) }
        guard let parsed = AuditLine(bytes) else {
            fragment.append(bytes)
            fragmentBytes += bytes.count + 1
            if fragmentBytes > AuditLine.maximumBytes { find(.malformed, at: line - fragment.count + 1) }
            return
        }
        guard closes(fragment, parsed) else { return }
        check(parsed, AuditChain.hash(bytes), bytes)
    }

    /// Ends the verification.
    package mutating func finish() -> AuditResult {
        endFile()
        if !isDecided, result.lines == 0 { find(.empty, at: 0) }
        if !isDecided, wantedHead != nil, !foundHead { find(.headMissing, at: line) }
        return result
    }

    private mutating func endFile() {
        guard !isDecided, files > 0 else { return }
        switch suspicion {
        case .gap(let line, _, _)?: return find(.removed, at: line)
        // Nothing follows: the line itself has no other fault.
        case .mismatch(let line, _, _, _)?: return find(.changed, at: line - 1)
        case nil: break
        }
        if !fragment.isEmpty { return find(.malformed, at: line - fragment.count + 1) }
        if line == 0 { find(.empty, at: 0) }
    }

    private mutating func find(_ problem: AuditProblem, at line: Int) {
        result.finding = AuditResult.Finding(file: file, line: max(line, 0), problem: problem)
        suspicion = nil
    }

    /// Whether a line may follow what was not written to its end: only a head that names it.
    private mutating func closes(_ fragment: [[UInt8]], _ parsed: AuditLine) -> Bool {
        let torn = parsed.head?.torn
        guard !fragment.isEmpty else {
            if torn != nil { find(.removed, at: line) }
            return torn == nil
        }
        guard let torn, parsed.head?.cause == .torn, torn == AuditChain.hash(AuditTail.joined(fragment)) else {
            find(.malformed, at: line - fragment.count)
            return false
        }
        result.torn += 1
        (self.fragment, fragmentBytes) = ([], 0)
        return true
    }

    private mutating func check(_ parsed: AuditLine, _ hash: String, _ bytes: [UInt8]) {
        if isFirst {
            guard parsed.head?.opens == true else { return find(.missingStart, at: line) }
            guard begins(parsed) else { return find(files > 1 ? .notContinued : .changed, at: line) }
        } else if let expected {
            guard follows(expected, parsed, hash) else { return }
        }
        if let head = parsed.head {
            guard isGenuine(head, bytes) else { return }
            result.heads += 1
            result.unsigned = 0
            result.lost = head.lost
            result.lastHead = hash
            result.isClosed = head.cause == .end || head.cause == .rotation
            if hash == wantedHead { foundHead = true }
        } else {
            result.unsigned += 1
            result.isClosed = false
        }
        result.lines += 1
        isFirst = false
        expected = Expected(
            chain: AuditChain(name: parsed.chain, sequence: parsed.sequence &+ 1, last: hash),
            beforeLast: parsed.previous)
    }

    /// Whether a file may begin with a line.
    private func begins(_ parsed: AuditLine) -> Bool {
        guard let chain = expected?.chain else {
            return (parsed.sequence == 0) == (parsed.previous == AuditChain.noHash)
        }
        return parsed.chain == chain.name && parsed.sequence == chain.sequence && parsed.previous == chain.last
    }

    private mutating func follows(_ expected: Expected, _ parsed: AuditLine, _ hash: String) -> Bool {
        let chain = expected.chain
        if parsed.chain != chain.name {
            find(.foreign, at: line)
        } else if parsed.sequence > chain.sequence {
            suspicion = .gap(line: line, missing: chain.sequence, chain: chain.name)
        } else if parsed.sequence < chain.sequence {
            let isSuccessorOfSame =
                parsed.sequence == chain.sequence &- 1 && parsed.previous == expected.beforeLast && hash != chain.last
            find(isSuccessorOfSame ? .inserted : .duplicated, at: isSuccessorOfSame ? line - 1 : line)
        } else if parsed.previous != chain.last {
            suspicion = .mismatch(line: line, previous: chain.last, hash: hash, sequence: parsed.sequence)
        } else {
            return true
        }
        return false
    }

    private mutating func isGenuine(_ head: AuditHead, _ bytes: [UInt8]) -> Bool {
        let key: PublicKey
        if let trusted = known[head.key] {
            key = trusted
        } else if trusted.isEmpty, let named = PublicKey(auditName: head.key) {
            known[head.key] = named
            key = named
        } else {
            find(.unknownKey, at: line)
            return false
        }
        guard key.verify(head.signature, over: Array(bytes.prefix(head.signedBytes))) else {
            find(.badSignature, at: line)
            return false
        }
        if !result.keys.contains(head.key) { result.keys.append(head.key) }
        return true
    }

    /// Finds out by a later line what happened.
    private mutating func resolve(_ suspicion: Suspicion, by bytes: [UInt8]) {
        let later = AuditLine(bytes)
        switch suspicion {
        case .gap(let line, let missing, let chain):
            if let later, later.sequence == missing, later.chain == chain { find(.reordered, at: line) }
        case .mismatch(let line, let previous, let hash, let sequence):
            if let later, later.previous == previous, later.sequence == sequence {
                find(.inserted, at: line)
            } else if later?.previous == hash {
                find(.changed, at: line - 1)
            } else {
                find(.changed, at: line)
            }
        }
    }
}
