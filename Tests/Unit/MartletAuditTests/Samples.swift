import MartletCore
import Synchronization

@testable import MartletAudit

/// A log in memory.
struct SampleLog {
    static let key = AuditKey.forTests

    var stream: AuditStream
    var lines: [[UInt8]] = []

    init(key: AuditKey = SampleLog.key, chain: AuditChain? = nil, cause: HeadCause = .start) throws {
        stream = AuditStream(try chain ?? AuditChain(), key: key)
        try add(AuditHead(cause: cause, opens: true))
    }

    static func time(_ second: Int64) -> AuditTime {
        AuditTime(
            milliseconds: 1_800_000_000_000 + second * 1000,
            monotonic: MonotonicTime(nanoseconds: second * 1_000_000_000))
    }

    mutating func add(_ head: AuditHead, at second: Int64 = 0) throws {
        lines.append(try stream.head(head, at: Self.time(second)))
    }

    mutating func add(_ subjects: String..., at second: Int64 = 0) throws {
        for subject in subjects {
            var event = AuditEvent(.login)
            event.set(subject: subject)
            let body = event.body(at: Self.time(second).milliseconds)
            lines += try stream.lines(for: [body], at: Self.time(second)).map(\.bytes)
        }
    }

    /// Start, three events, a head, two events, the end: eight lines.
    static func closed() throws -> SampleLog {
        var log = try SampleLog()
        try log.add("usr_1", "usr_2", "usr_3")
        try log.add(AuditHead(cause: .periodic))
        try log.add("usr_4", "usr_5")
        try log.add(AuditHead(cause: .end))
        return log
    }
}

extension AuditKey {
    static let forTests: AuditKey = {
        do { return try AuditKey() } catch { preconditionFailure("no key: \(error)") }
    }()
}

/// What a verification finds in files of lines.
func result(
    _ files: [[UInt8]]..., trusting keys: [AuditKey] = [.forTests], head: String? = nil, tornEnd: Bool = false
) -> AuditResult {
    var verifier = AuditVerifier(trusting: keys.map(\.publicKey), wantedHead: head)
    for (index, file) in files.enumerated() {
        verifier.begin(file: "file\(index + 1)")
        for (number, line) in file.enumerated() {
            verifier.take(line, isTerminated: !(tornEnd && number == file.count - 1))
        }
    }
    return verifier.finish()
}

extension [[UInt8]] {
    /// The lines that do not depend on how long a test takes.
    var withoutPeriodicHeads: [[UInt8]] { filter { AuditLine($0)?.head?.cause != .periodic } }
}

extension [UInt8] {
    func replacing(_ old: String, with new: String) -> [UInt8] {
        let text = String(decoding: self, as: UTF8.self)
        guard let range = text.firstRange(of: old) else { return self }
        var changed = text
        changed.replaceSubrange(range, with: new)
        return Array(changed.utf8)
    }
}

/// A destination in memory, which fails as often as a test wants.
final class MemorySink: AuditSink {
    struct State {
        var lines: [[UInt8]] = []
        var failures = 0
        var isMoved = false
        var files = 1
        var isClosed = false
    }

    let name = "memory"
    let retryLimit: Duration
    let isCertain: Bool
    let state: Mutex<State>

    init(failures: Int = 0, retryLimit: Duration = .zero, isCertain: Bool = true) {
        self.retryLimit = retryLimit
        self.isCertain = isCertain
        state = Mutex(State(failures: failures))
    }

    func open() throws(AuditError) -> AuditStart { .new(torn: nil) }

    func write(_ lines: ArraySlice<OutputLine>, until isOver: @Sendable () -> Bool) -> WriteOutcome {
        state.withLock { state in
            guard state.failures == 0 else {
                state.failures -= 1
                return .failed(written: 0, AuditError(.auditNotWritten, "full"))
            }
            state.lines += lines.map(\.bytes)
            return .written
        }
    }

    func prepareRotation() throws(AuditError) -> Bool { state.withLock { $0.isMoved } }

    func rotate() {
        state.withLock { state in
            state.files += 1
            state.isMoved = false
        }
    }

    func close() { state.withLock { $0.isClosed = true } }

    var lines: [[UInt8]] { state.withLock { $0.lines } }
}
