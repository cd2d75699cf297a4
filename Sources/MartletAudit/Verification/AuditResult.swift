package import MartletJSON

/// Why a line is not as it was written.
package enum AuditProblem: String, Sendable, CaseIterable {
    /// There is no line.
    case empty
    /// A line is not one of a log.
    case malformed
    /// The last line was not written to its end.
    case torn
    /// The first line does not open the file.
    case missingStart = "missing_start"
    /// The file does not go on where the one before it ended.
    case notContinued = "not_continued"
    case removed, changed, reordered, inserted, duplicated
    /// A line of another chain.
    case foreign
    /// A head of a key that is not trusted.
    case unknownKey = "unknown_key"
    /// A head that its key has not signed.
    case badSignature = "bad_signature"
    /// The head that was asked for is not there.
    case headMissing = "head_missing"

    /// What it may be instead of a change; `nil` where it is nothing else.
    package var hint: String? {
        switch self {
        case .notContinued, .foreign: "each instance has a chain of its own: verify the files of one at a time"
        case .unknownKey: "after a change of keys, give the key before with --key, too"
        default: nil
        }
    }
}

/// What a verification has found.
package struct AuditResult: Sendable, Equatable {
    /// The first line that is not in order.
    package struct Finding: Sendable, Equatable {
        package let file: String
        /// From 1; 0 is the file as a whole.
        package let line: Int
        package let problem: AuditProblem
    }

    package var finding: Finding?
    package var lines = 0
    package var heads = 0
    /// Lines behind the last head, which nothing vouches for yet.
    package var unsigned = 0
    /// Events that were lost before they could be written, as the last head says.
    package var lost = 0
    /// Lines that were not written to their end, and that a head has closed off.
    package var torn = 0
    /// The hash of the last head; empty without one.
    package var lastHead = ""
    /// Whether the last line ends the log, or its file.
    package var isClosed = false
    /// The public keys of the heads.
    package var keys: [String] = []

    package var isGood: Bool { finding == nil }

    /// The document that `--json` prints.
    package var document: JSONObject {
        var document: JSONObject = [
            "ok": .bool(isGood), "lines": .integer(Int64(lines)), "heads": .integer(Int64(heads)),
            "unsigned": .integer(Int64(unsigned)), "lost": .integer(Int64(lost)), "torn": .integer(Int64(torn)),
            "closed": .bool(isClosed), "last_head": .string(lastHead), "keys": .array(keys.map { .string($0) }),
        ]
        guard let finding else { return document }
        document["file"] = .string(finding.file)
        document["line"] = .integer(Int64(finding.line))
        document["reason"] = .string(finding.problem.rawValue)
        return document
    }
}
