private import CLinux
internal import MartletCore

/// Where a chain begins at a destination.
enum AuditStart: Sendable {
    /// A new chain.
    /// - Parameter torn: the hash of what a first line left that was not written to its end.
    case new(torn: String?)
    /// Behind the last line.
    case behind(AuditTail)
}

/// Whether lines were written.
enum WriteOutcome: Sendable {
    case written
    /// So many of the first lines are written; of the others nothing is, as far as the destination knows.
    case failed(written: Int, AuditError)
    /// The file has to be opened again, because its end is not known.
    case broken(AuditError)
    /// Nothing is written, because someone has emptied the file: a head has to open it first.
    case emptied
}

/// A destination of an audit log. It is used by one thread, which it may block for as long as its limits say.
protocol AuditSink: Sendable {
    /// The key of the configuration.
    var name: String { get }
    /// How long lines are attempted to be written before they are given up.
    var retryLimit: Duration { get }
    /// Whether lines that failed have certainly not arrived, so that the chain goes on without them.
    var isCertain: Bool { get }

    func open() throws(AuditError) -> AuditStart
    /// - Parameter isOver: whether to give up.
    func write(_ lines: ArraySlice<OutputLine>, until isOver: @Sendable () -> Bool) -> WriteOutcome
    /// Opens what replaces a file that was moved; `false` if nothing was.
    func prepareRotation() throws(AuditError) -> Bool
    /// Goes on with what was prepared.
    func rotate()
    /// Whether someone has emptied the file.
    var wasEmptied: Bool { get }
    func close()
}

extension AuditSink {
    func prepareRotation() throws(AuditError) -> Bool { false }
    func rotate() {}
    var wasEmptied: Bool { false }
}

/// The text of the last failed system call.
func systemReason(_ number: Int32) -> String {
    guard let text = unsafe strerror(number) else { return "error \(number)" }
    return unsafe String(cString: text)
}
