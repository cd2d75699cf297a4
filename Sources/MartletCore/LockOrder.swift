private import CLinux

/// Checks the rules of ``Lock``, in debug builds: each thread knows which locks it holds and where it took them.
public enum LockOrder {
    /// Takes note that this thread is about to take a lock.
    @usableFromInline static func take(_ rank: LockRank) {
        let held = martlet_lock_held()
        if held != 0, held >= rank.rawValue {
            end("takes a lock of rank \(rank) while it holds one of rank \(name(held))")
        }
        martlet_lock_push(rank.rawValue)
    }

    /// Takes note that this thread has returned the lock that it took last.
    @usableFromInline static func release() { martlet_lock_pop() }

    /// Ends a debug build in which a lock is held; does nothing in others.
    ///
    /// It stands at the entry of whatever may run foreign code: writing a log line, resuming or starting a task.
    /// - Parameter call: what is called.
    @inlinable public static func requireNone(for call: StaticString) {
        #if DEBUG
        checkNone(for: call)
        #endif
    }

    @usableFromInline static func checkNone(for call: StaticString) {
        let held = martlet_lock_held()
        if held != 0, LockRank(rawValue: held)?.isWaitedFor != false {
            end("\(call) while it holds a lock of rank \(name(held))")
        }
    }

    private static func name(_ rank: UInt8) -> String { LockRank(rawValue: rank).map { "\($0)" } ?? "?" }

    private static func end(_ violation: String) {
        let text = "lock order: this thread \(violation)\n"
        unsafe text.withCString { unsafe martlet_lock_violation($0) }
    }
}
