internal import MartletCore

/// The files that are opened again at SIGUSR1, after a program such as logrotate has renamed them.
package final class ReopenableFiles: Sendable {
    /// Names what was added.
    package struct Token: Sendable, Hashable {
        fileprivate let number: Int
    }

    private struct State {
        var next = 0
        var files: [Token: @Sendable () -> Void] = [:]
    }

    private let state = Lock(State())

    package init() {}

    /// Adds a file.
    /// - Parameter reopen: opens it again, without waiting: another thread does it, and logs what comes of it.
    package func add(_ reopen: @escaping @Sendable () -> Void) -> Token {
        state.withLock { state in
            let token = Token(number: state.next)
            state.next += 1
            state.files[token] = reopen
            return token
        }
    }

    /// Removes a file that is closed.
    package func remove(_ token: Token) { state.withLock { $0.files[token] = nil } }

    /// Opens every file again.
    package func reopenAll() {
        for reopen in state.withLock({ Array($0.files.values) }) { reopen() }
    }
}
