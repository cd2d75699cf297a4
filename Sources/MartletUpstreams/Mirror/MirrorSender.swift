package import MartletCore
internal import MartletFetch

/// Sends copies of requests to other upstreams, on a thread of its own that exists only while a route has a mirror.
///
/// Event loops hand copies over and go on: outcomes are counted, and affect no request.
package final class MirrorSender: MirrorReceiving {
    private struct State {
        var book = MirrorBook()
        var worker: TransferWorker?
        var isStopped = false
    }

    private let state = Lock(State(), .workers)

    package init() {}

    deinit { state.withLock { $0.worker?.stop() } }

    /// The counters of each upstream that gets copies.
    package var counts: [String: MirrorCounts] { state.withLock { $0.book.counts } }

    /// Replaces the upstreams that get copies.
    /// - Throws: without a thread; all copies fail then.
    package func follow(_ targets: [MirrorTarget]) throws(HTTPCallError) {
        let unused = try state.withLock { state throws(HTTPCallError) -> TransferWorker? in
            state.book.adopt(targets)
            if targets.isEmpty {
                defer { state.worker = nil }
                return state.worker
            }
            if state.worker == nil, !state.isStopped {
                state.worker = try TransferWorker(name: "martlet-mirror", keptConnections: MirrorBook.maximumInFlight)
            }
            return nil
        }
        // Its thread may wait for the lock.
        unused?.shutdown()
    }

    /// Asks whether a copy may be collected.
    package func admit(for upstream: String) -> MirrorPermit? {
        guard state.withLock({ $0.book.collect(for: upstream) }) else { return nil }
        return MirrorPermit { [weak self] in self?.state.withLock { $0.book.release(upstream) } }
    }

    /// Begins to send a copy, or drops it.
    package func send(_ request: MirrorRequest) {
        let (decision, worker) = state.withLock { ($0.book.begin(request.upstream), $0.worker) }
        guard case .send(let endpoint, let target) = decision else { return }
        let upstream = request.upstream
        let transfer = MirrorTransfer(
            request: request, endpoint: endpoint, connectTimeout: target.connectTimeout, timeout: target.timeout
        ) { [weak self] isSent in
            self?.state.withLock { $0.book.finish(upstream, isSent: isSent) }
        }
        guard let worker else { return transfer.onEnd(false) }
        worker.add(transfer)
    }

    /// Ends the thread, without waiting for copies on their way.
    package func shutdown() {
        let worker = state.withLock { state in
            state.isStopped = true
            defer { state.worker = nil }
            return state.worker
        }
        worker?.shutdown()
    }
}
