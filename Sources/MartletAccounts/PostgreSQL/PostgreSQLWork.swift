internal import MartletCore
internal import MartletIO

/// A call on its way through the pool; on the loop only.
class PostgreSQLWork {
    /// What to do next for it.
    enum Move {
        /// Ask, outside any transaction.
        case read([Query])
        /// Ask inside the transaction, and come back.
        case ask([Query])
        /// Ask inside the transaction, and commit.
        case commit([Query])
        /// It has its answer.
        case done
        /// Go back, it has its answer.
        case takeBack
    }

    /// How often a call may begin: it may meet others, and connections that end.
    static let maximumAttempts = 6

    let deadline: MonotonicTime
    var timer: LoopTimer?
    var attempts = 0
    /// Where it is under way.
    weak var connection: PostgreSQLConnection?
    /// Whether the commit has been sent: from then on the outcome of a loss is unknown.
    var isCommitting = false
    fileprivate(set) var isSettled = false

    init(deadline: MonotonicTime) { self.deadline = deadline }

    /// Whether it may share a connection with others.
    var isReading: Bool { true }
    /// The first move, each time it begins.
    func begin() -> Move { .done }
    /// The next one.
    func received(_ answers: Answers) -> Move { .done }
    /// Answers the caller; once.
    func fail(_ error: AccountError) { markSettled() }

    fileprivate func markSettled() {
        isSettled = true
        timer?.cancel()
        timer = nil
    }
}

/// A call that reads.
final class PostgreSQLReading<Value: Sendable>: PostgreSQLWork {
    private let reading: Reading<Value>
    private let completion: (Result<Value, AccountError>) -> Void

    init(
        _ reading: Reading<Value>, deadline: MonotonicTime,
        _ completion: @escaping (Result<Value, AccountError>) -> Void
    ) {
        self.reading = reading
        self.completion = completion
        super.init(deadline: deadline)
    }

    override func begin() -> Move { .read(reading.queries) }

    override func received(_ answers: Answers) -> Move {
        guard !isSettled else { return .done }
        markSettled()
        do throws(AccountError) {
            completion(.success(try reading.finish(answers)))
        } catch {
            completion(.failure(error))
        }
        return .done
    }

    override func fail(_ error: AccountError) {
        guard !isSettled else { return }
        markSettled()
        completion(.failure(error))
    }
}

/// A call that writes, in a transaction.
final class PostgreSQLChange<Value: Sendable>: PostgreSQLWork {
    private let first: Step<Value>
    private var step: Step<Value>
    private let completion: (Result<Value, AccountError>) -> Void

    init(_ first: Step<Value>, deadline: MonotonicTime, _ completion: @escaping (Result<Value, AccountError>) -> Void) {
        self.first = first
        step = first
        self.completion = completion
        super.init(deadline: deadline)
    }

    override var isReading: Bool { false }

    override func begin() -> Move {
        isCommitting = false
        step = first
        return move()
    }

    override func received(_ answers: Answers) -> Move {
        guard !isSettled else { return isCommitting ? .done : .takeBack }
        do throws(AccountError) {
            switch step {
            case .run(_, let next):
                step = try next(answers)
                return move()
            case .commit(_, let finish):
                let value = try finish(answers)
                markSettled()
                completion(.success(value))
                return .done
            }
        } catch {
            fail(error)
            return isCommitting ? .done : .takeBack
        }
    }

    override func fail(_ error: AccountError) {
        guard !isSettled else { return }
        markSettled()
        completion(.failure(error))
    }

    private func move() -> Move {
        switch step {
        case .run(let queries, _): return .ask(queries)
        case .commit(let queries, _):
            isCommitting = true
            return .commit(queries)
        }
    }
}
