package import MartletCore
internal import MartletFetch

/// Sends copies of requests to other upstreams, on a thread of its own that exists only while a route has a mirror.
///
/// Event loops hand copies over and go on: outcomes are counted, and affect no request.
package final class MirrorSender: MirrorReceiving {
    private struct State {
        var book = MirrorBook()
        var running: Running?
        var isStopped = false
    }

    private struct Running {
        let worker: TransferWorker
        let thread: SystemThread

        func shutdown() {
            worker.stop()
            thread.join()
        }
    }

    private let state = Lock(State(), .workers)

    package init() {}

    deinit { state.withLock { $0.running?.worker.stop() } }

    /// The counters of each upstream that gets copies.
    package var counts: [String: MirrorCounts] { state.withLock { $0.book.counts } }

    /// Replaces the upstreams that get copies.
    /// - Throws: without a thread; all copies fail then.
    package func follow(_ targets: [MirrorTarget]) throws(HTTPCallError) {
        let unused = try state.withLock { state throws(HTTPCallError) -> Running? in
            state.book.adopt(targets)
            if targets.isEmpty {
                defer { state.running = nil }
                return state.running
            }
            if state.running == nil, !state.isStopped { state.running = try Self.start() }
            return nil
        }
        // Its thread may wait for the lock.
        unused?.shutdown()
    }

    private static func start() throws(HTTPCallError) -> Running {
        let worker = try TransferWorker(keptConnections: MirrorBook.maximumInFlight)
        do {
            return Running(worker: worker, thread: try SystemThread(name: "martlet-mirror") { worker.run() })
        } catch {
            throw HTTPCallError(code: .fetchFailed, message: "\(error)")
        }
    }

    /// Asks whether a copy may be collected.
    package func admit(for upstream: String) -> MirrorPermit? {
        guard state.withLock({ $0.book.collect(for: upstream) }) else { return nil }
        return MirrorPermit { [weak self] in self?.state.withLock { $0.book.release(upstream) } }
    }

    /// Begins to send a copy, or drops it.
    package func send(_ request: MirrorRequest) {
        let (decision, worker) = state.withLock { ($0.book.begin(request.upstream), $0.running?.worker) }
        guard case .send(let endpoint, let target) = decision else { return }
        let upstream = request.upstream
        let pending = PendingMirror(
            request: request, endpoint: endpoint, connectTimeout: target.connectTimeout, timeout: target.timeout
        ) { [weak self] isSent in
            self?.state.withLock { $0.book.finish(upstream, isSent: isSent) }
        }
        guard let worker else { return pending.onEnd(false) }
        if let error = worker.add(pending) { pending.fail(error) }
    }

    /// Ends the thread, without waiting for copies on their way.
    package func shutdown() {
        let running = state.withLock { state in
            state.isStopped = true
            defer { state.running = nil }
            return state.running
        }
        running?.shutdown()
    }
}
