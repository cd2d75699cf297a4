public import Synchronization

/// A value that one thread at a time may use: the only lock in this program.
///
/// The rules make it impossible that two threads wait for each other. Under a lock no other one is taken, unless
/// ``LockRank`` puts it above; and nothing is called whose code is not in sight: a log, a callback, a continuation, a
/// stream, the cancellation of a task. Such calls follow after the lock, with what the locked part has returned. Debug
/// builds check both, and end the process with the stacks of a violation.
@frozen public struct Lock<Value: ~Copyable>: ~Copyable {
    @usableFromInline let value: Mutex<Value>
    @usableFromInline let rank: LockRank

    /// - Parameters:
    ///   - value: what the lock protects.
    ///   - rank: what may be locked under it; nothing, unless stated.
    @inlinable public init(_ value: consuming sending Value, _ rank: LockRank = .leaf) {
        self.value = Mutex(value)
        self.rank = rank
    }

    /// Runs a body that has the value for itself.
    @inlinable public borrowing func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        #if DEBUG
        LockOrder.take(rank)
        defer { LockOrder.release() }
        #endif
        return try value.withLock(body)
    }

    /// The same, unless the lock is held: it waits for no one.
    /// - Returns: `nil` if it is held.
    @inlinable public borrowing func withLockIfAvailable<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result? {
        #if DEBUG
        LockOrder.take(rank)
        defer { LockOrder.release() }
        #endif
        return try value.withLockIfAvailable(body)
    }
}

extension Lock: Sendable where Value: ~Copyable {}

/// Which locks may be taken under which: only one of a higher rank. All that are not named here are leaves.
///
/// The others keep an order: what they publish while they are held, later calls cannot overtake.
@frozen public enum LockRank: UInt8, Sendable {
    /// Addresses of host names, which loops, health checks and mirrors follow.
    case names = 10
    /// Which endpoints are in use, which loops and mirrors follow.
    case endpoints = 20
    /// Which upstreams get copies, told in order to the thread that sends them.
    case mirrors = 25
    /// The threads of health checks, of mirrors and of traces, which are started, told and stopped in order.
    case workers = 30
    /// The destination of a log, which its thread alone uses.
    case logDestination = 40
    /// A connection to an embedded database, for the length of a transaction.
    case database = 50
    /// Under it no lock is taken.
    case leaf = 255

    /// Whether a thread may wait for such a lock. For the others none does: they are what the compiler asks of a value
    /// that one thread uses at a time, and what is called under them holds no one up.
    var isWaitedFor: Bool { self != .logDestination && self != .database }
}
