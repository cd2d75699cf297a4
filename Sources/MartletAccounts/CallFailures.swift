internal import MartletCore

/// What calls fail for although the store is there: a table that is gone, a right that is missing, a lock that is held.
///
/// Background work may go on while logins fail, so a failure ends when the same operation works again, whatever others
/// do. Operations are named by the statements that they begin with.
struct CallFailures: Sendable {
    private struct Failure: Sendable {
        let error: AccountError
        let time: MonotonicTime
    }

    /// What says something about the database, and not about one account or about what the gateway itself has to do.
    private static let states: Set<ErrorCode> = [
        .accountsFailed, .accountsFull, .accountsReadOnly, .accountsInputOutput, .accountsBusy, .accountsTimeout,
    ]
    /// What ends by itself, so that any call which works after a while ends it.
    private static let passing: Set<ErrorCode> = [.accountsBusy, .accountsTimeout]
    private static let memory = Duration.seconds(10)
    /// There are fewer operations.
    private static let maximumOperations = 256

    private var operations: [[Statement]: Failure] = [:]

    /// Why calls fail; `nil` if none does. The one that failed last says most about now.
    var failure: AccountError? {
        operations.isEmpty ? nil : operations.values.max { $0.time < $1.time }?.error
    }

    /// A call has ended.
    /// - Parameter operation: what it is, which is asked for only where it matters.
    mutating func ended(_ operation: @autoclosure () -> [Statement], _ error: AccountError?, at now: MonotonicTime) {
        if let error, error.kind == .unavailable {
            guard Self.states.contains(error.code) else { return }
            let operation = operation()
            guard operations[operation] != nil || operations.count < Self.maximumOperations else { return }
            operations[operation] = Failure(error: error, time: now)
        } else if !operations.isEmpty {
            let ended = operations.removeValue(forKey: operation())?.error
            // What this one failed for is gone, for operations that are rare, too.
            operations = operations.filter { _, other in
                let hasPassed = Self.passing.contains(other.error.code) && now.since(other.time) >= Self.memory
                return !hasPassed && other.error.message != ended?.message
            }
        }
    }
}
