internal import CPostgreSQL
internal import MartletCore
internal import MartletIO

/// One connection on its event loop: libpq implements the protocol and TLS, and the loop polls its socket.
///
/// It always uses pipeline mode. A batch is a sequence of statements up to a synchronization point. Results arrive in
/// order, and after a failed statement the rest of its batch is skipped. Statements are unnamed, so that a pooler may
/// give each transaction another session.
@safe final class PostgreSQLConnection {
    typealias Completion = (Result<QueryResults, PostgreSQLBatchError>) -> Void

    /// Results expected from libpq, in order.
    private enum Expected {
        case rows
        case synchronization
    }

    private struct Batch {
        var rows: [[Row]] = []
        var failure: PostgreSQLBatchError?
        let completion: Completion
    }

    private enum State { case connecting, ready, closed }

    private let loop: ServiceLoop
    private var handle: OpaquePointer?
    private var state = State.connecting
    private var registration: LoopRegistration?
    private var expected: [Expected] = []
    private var hasResult = false
    private var batches: [Batch] = []
    private var onReady: () -> Void
    private var onLost: (AccountError) -> Void

    /// Begins to connect.
    /// - Parameters:
    ///   - onReady: called once, when the connection is established.
    ///   - onLost: called once, when the connection fails or is lost; not after `close()`.
    init(
        _ target: PostgreSQLTarget, servers: [PostgreSQLTarget.Host], on loop: ServiceLoop,
        onReady: @escaping () -> Void, onLost: @escaping (AccountError) -> Void
    ) {
        loop.preconditionInLoop()
        self.loop = loop
        self.onReady = onReady
        self.onLost = onLost
        let handle = unsafe target.withParameters(servers) { unsafe PQconnectStartParams($0, $1, 0) }
        unsafe self.handle = unsafe handle
        if let handle = unsafe handle { unsafe martlet_pq_silence(handle) }
    }

    deinit {
        if let handle = unsafe handle { unsafe PQfinish(handle) }
    }

    var isReady: Bool { state == .ready }
    /// The number of pending batches.
    var inFlight: Int { batches.count }

    /// Continues the connection attempt; separate from `init` so that the owner can store the connection first.
    func start() {
        guard let handle = unsafe handle, unsafe PQstatus(handle) != CONNECTION_BAD else { return fail(connectError()) }
        watch(.writable)
    }

    /// What asks the server to end the statement that is running; it waits for the server, so not on the loop. `nil`
    /// without memory for it.
    func cancellation() -> PostgreSQLCancellation? {
        guard state == .ready, let handle = unsafe handle, let request = unsafe PQgetCancel(handle) else { return nil }
        return unsafe PostgreSQLCancellation(request)
    }

    /// Closes the connection; pending batches fail as lost.
    func close() {
        onReady = {}
        onLost = { _ in }
        end()
    }

    /// Sends a batch of statements and a synchronization point.
    func send(_ queries: [Query], _ completion: @escaping Completion) {
        loop.preconditionInLoop()
        guard state == .ready, let handle = unsafe handle else { return completion(.failure(.connectionLost)) }
        batches.append(Batch(completion: completion))
        for query in queries {
            guard unsafe send(query, handle) else { return fail(lostError()) }
        }
        guard unsafe PQpipelineSync(handle) == 1 else { return fail(lostError()) }
        expected.append(.synchronization)
        flush()
    }
}

/// A request to end the running statement of a connection, by a connection of its own.
@safe final class PostgreSQLCancellation: Sendable {
    /// Used by one thread, and freed with the last reference.
    private nonisolated(unsafe) let request: OpaquePointer

    fileprivate init(_ request: OpaquePointer) { unsafe self.request = request }

    deinit { unsafe PQfreeCancel(request) }

    /// Sends the request, and returns when the server has received it.
    func send() {
        var message = [CChar](repeating: 0, count: 256)
        // If it fails, the statement ends by its own timeout.
        _ = unsafe PQcancel(request, &message, Int32(message.count))
    }
}

// MARK: - Connecting

extension PostgreSQLConnection {
    private func watch(_ interest: Readiness) {
        guard let handle = unsafe handle else { return }
        do throws(IOError) {
            registration = try loop.register(unsafe PQsocket(handle), interest) { [weak self] readiness in
                self?.serve(readiness)
            }
        } catch {
            fail(.unavailable(.accountsConnectFailed, "\(error)"))
        }
    }

    private func serve(_ readiness: Readiness) {
        if readiness.has(.loopStopped) { return fail(.stopped) }
        switch state {
        case .connecting: poll()
        case .ready: receive()
        case .closed: break
        }
    }

    private func poll() {
        guard let handle = unsafe handle else { return }
        // libpq may switch to another socket, possibly with the same descriptor.
        registration?.end()
        registration = nil
        switch unsafe PQconnectPoll(handle) {
        case PGRES_POLLING_READING: watch(.readable)
        case PGRES_POLLING_WRITING: watch(.writable)
        case PGRES_POLLING_OK: unsafe connected(handle)
        default: fail(connectError())
        }
    }

    private func connected(_ handle: OpaquePointer) {
        guard unsafe PQserverVersion(handle) >= 110_000 else {
            return fail(.unavailable(.accountsConnectFailed, "PostgreSQL 11 or newer is required"))
        }
        guard unsafe PQsetnonblocking(handle, 1) == 0, unsafe PQenterPipelineMode(handle) == 1 else {
            return fail(connectError())
        }
        state = .ready
        watch(.readable)
        guard state == .ready else { return }
        let onReady = onReady
        self.onReady = {}
        onReady()
    }

    /// libpq's error message: the server, the user and the cause, without a password.
    private func connectError() -> AccountError {
        let message = unsafe handle.map { unsafe String(cString: PQerrorMessage($0)) } ?? "out of memory"
        let lines = message.split(whereSeparator: \.isNewline).map { $0.drop { $0 == "\t" || $0 == " " } }
        let text = String(lines.joined(separator: "; ").prefix(400))
        return .unavailable(.accountsConnectFailed, text.isEmpty ? "cannot connect to PostgreSQL" : text)
    }

    private func lostError() -> AccountError {
        .unavailable(.accountsConnectionLost, "PostgreSQL connection lost")
    }

    private func fail(_ error: AccountError) {
        guard state != .closed else { return }
        let onLost = onLost
        onReady = {}
        self.onLost = { _ in }
        end()
        onLost(error)
    }

    private func end() {
        guard state != .closed else { return }
        state = .closed
        registration?.end()
        registration = nil
        if let handle = unsafe handle { unsafe PQfinish(handle) }
        unsafe handle = nil
        let waiting = batches
        batches = []
        expected = []
        for batch in waiting { batch.completion(.failure(.connectionLost)) }
    }
}

// MARK: - Queries and results

extension PostgreSQLConnection {
    private func send(_ query: Query, _ handle: OpaquePointer) -> Bool {
        let values = CStrings(
            query.values.map {
                switch $0 {
                case .text(let text): text
                case .integer(let number): String(number)
                }
            })
        let count = Int32(clamping: values.count)
        let text = query.statement.text(.postgresql)
        expected.append(.rows)
        return unsafe values.withPointers { unsafe PQsendQueryParams(handle, text, count, nil, $0, nil, nil, 0) } == 1
    }

    private func flush() {
        guard let handle = unsafe handle else { return }
        let status = unsafe PQflush(handle)
        guard status >= 0 else { return fail(lostError()) }
        do throws(IOError) {
            try registration?.watch(status == 0 ? .readable : [.readable, .writable])
        } catch {
            fail(lostError())
        }
    }

    private func receive() {
        guard let handle = unsafe handle else { return }
        guard unsafe PQconsumeInput(handle) == 1 else { return fail(lostError()) }
        while processResult() {}
        if state == .ready { flush() }
    }

    /// Processes one result; `false` if none is available yet.
    private func processResult() -> Bool {
        guard state == .ready, let handle = unsafe handle, unsafe PQisBusy(handle) == 0, !expected.isEmpty else {
            return false
        }
        guard let result = unsafe PQgetResult(handle) else {
            // The end of a statement's results, or no result yet.
            guard hasResult else { return false }
            hasResult = false
            expected.removeFirst()
            return true
        }
        defer { unsafe PQclear(result) }
        guard unsafe PQstatus(handle) != CONNECTION_BAD else {
            fail(lostError())
            return false
        }
        return unsafe process(result)
    }

    private func process(_ result: OpaquePointer) -> Bool {
        let status = unsafe PQresultStatus(result)
        switch (expected[0], status) {
        case (.synchronization, PGRES_PIPELINE_SYNC):
            expected.removeFirst()
            finishBatch()
            return true
        case (.rows, PGRES_COMMAND_OK): batches[0].rows.append([])
        case (.rows, PGRES_TUPLES_OK):
            guard let rows = unsafe PostgreSQLConnection.rows(result) else {
                fail(.corrupt)
                return false
            }
            batches[0].rows.append(rows)
        case (.rows, PGRES_FATAL_ERROR), (.rows, PGRES_PIPELINE_ABORTED): unsafe recordFailure(result)
        default:
            fail(.unavailable(.accountsFailed, "unexpected result from PostgreSQL"))
            return false
        }
        hasResult = true
        return true
    }

    /// Records the first failed statement; later ones of the batch were skipped because of it.
    private func recordFailure(_ result: OpaquePointer) {
        guard batches[0].failure == nil else { return }
        let state = unsafe martlet_pq_state(result).map { unsafe String(cString: $0) } ?? "XX000"
        let message = unsafe martlet_pq_message(result).map { unsafe String(cString: $0) } ?? ""
        batches[0].failure = .statementFailed(state: state, message: message)
    }

    private func finishBatch() {
        let batch = batches.removeFirst()
        batch.completion(batch.failure.map { .failure($0) } ?? .success(QueryResults(rows: batch.rows)))
    }

    private static func rows(_ result: OpaquePointer) -> [Row]? {
        var rows: [Row] = []
        let width = unsafe PQnfields(result)
        for row in 0..<(unsafe PQntuples(result)) {
            var columns: [String?] = []
            for column in 0..<width {
                guard unsafe PQgetisnull(result, row, column) == 0 else {
                    columns.append(nil)
                    continue
                }
                guard let start = unsafe PQgetvalue(result, row, column) else { return nil }
                let bytes = unsafe UnsafeRawBufferPointer(start: start, count: Int(PQgetlength(result, row, column)))
                guard let text = unsafe String(validating: bytes, as: UTF8.self) else { return nil }
                columns.append(text)
            }
            rows.append(Row(columns: columns))
        }
        return rows
    }
}
