internal import MartletCore
internal import MartletIO

/// A call in the pool; used on the event loop only.
class PostgreSQLOperation {
    /// The next action of a operation.
    enum Action {
        /// Run queries outside a transaction.
        case read([Query])
        /// Run queries in the transaction and continue.
        case query([Query])
        /// Run queries in the transaction and commit.
        case commit([Query])
        /// The operation is complete.
        case done
        /// Roll back; the operation is complete.
        case rollBack
    }

    /// The maximum number of attempts after conflicts; each connection of the pool may be lost in addition.
    static let maximumAttempts = 6

    let deadline: MonotonicTime
    /// Who causes it.
    let owner: WorkOwner
    var timer: LoopTimer?
    var attempts = 0
    /// Whether it fails at the first error.
    var isUnrepeatable = false
    /// The connection it is running on.
    weak var connection: PostgreSQLConnection?
    /// Whether it was given up while a batch of it is on that connection.
    var isAbandoned = false
    /// Whether the commit has been sent; after that, a lost connection leaves the outcome unknown.
    var isCommitting = false
    fileprivate(set) var isCompleted = false

    init(deadline: MonotonicTime) {
        self.deadline = deadline
        owner = .current
    }

    /// Whether it can be pipelined with other operations.
    var isReading: Bool { true }
    /// Starts an attempt and returns its first action.
    func begin() -> Action { .done }
    /// Processes results and returns the next action.
    func received(_ results: QueryResults) -> Action { .done }
    /// Fails the call; later calls have no effect.
    func fail(_ error: AccountError) {}
}

/// A call with a result, which is passed on once.
class PostgreSQLCall<Value: Sendable>: PostgreSQLOperation {
    private let completion: (Result<Value, AccountError>) -> Void

    fileprivate init(deadline: MonotonicTime, _ completion: @escaping (Result<Value, AccountError>) -> Void) {
        self.completion = completion
        super.init(deadline: deadline)
    }

    fileprivate func complete(_ result: Result<Value, AccountError>) {
        guard !isCompleted else { return }
        isCompleted = true
        timer?.cancel()
        timer = nil
        completion(result)
    }

    override func fail(_ error: AccountError) { complete(.failure(error)) }
}

/// A read call.
final class PostgreSQLReadOperation<Value: Sendable>: PostgreSQLCall<Value> {
    private let reading: ReadOperation<Value>

    init(
        _ reading: ReadOperation<Value>, deadline: MonotonicTime,
        _ completion: @escaping (Result<Value, AccountError>) -> Void
    ) {
        self.reading = reading
        super.init(deadline: deadline, completion)
    }

    override func begin() -> Action { .read(reading.queries) }

    override func received(_ results: QueryResults) -> Action {
        if !isCompleted { complete(Result { () throws(AccountError) in try reading.finish(results) }) }
        return .done
    }
}

/// A call that runs a transaction.
final class PostgreSQLTransactionOperation<Value: Sendable>: PostgreSQLCall<Value> {
    private let first: TransactionStep<Value>
    private var step: TransactionStep<Value>

    init(
        _ first: TransactionStep<Value>, deadline: MonotonicTime,
        _ completion: @escaping (Result<Value, AccountError>) -> Void
    ) {
        self.first = first
        step = first
        super.init(deadline: deadline, completion)
    }

    override var isReading: Bool { false }

    override func begin() -> Action {
        isCommitting = false
        step = first
        return nextAction()
    }

    override func received(_ results: QueryResults) -> Action {
        guard !isCompleted else { return isCommitting ? .done : .rollBack }
        do throws(AccountError) {
            switch step {
            case .run(_, let next):
                step = try next(results)
                return nextAction()
            case .commit(_, let finish):
                complete(.success(try finish(results)))
                return .done
            }
        } catch {
            fail(error)
            return isCommitting ? .done : .rollBack
        }
    }

    private func nextAction() -> Action {
        switch step {
        case .run(let queries, _): return .query(queries)
        case .commit(let queries, _):
            isCommitting = true
            return .commit(queries)
        }
    }
}
