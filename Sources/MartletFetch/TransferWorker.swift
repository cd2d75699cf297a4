package import CCurl
package import MartletCore

/// A transfer that waits for the thread of a ``TransferWorker``.
package protocol PendingTransfer: Sendable {
    /// Whether its result is not wanted any more.
    var wasCancelled: Bool { get }

    /// Prepares its handle, on the thread.
    func makeTransfer() throws(HTTPCallError) -> any RunningTransfer

    /// It ends without a transfer.
    func fail(_ error: HTTPCallError)
}

/// A transfer with its handle; used on the worker's thread only.
package protocol RunningTransfer: AnyObject {
    /// The curl handle, which it owns.
    @unsafe var handle: UnsafeMutableRawPointer { get }
    /// Whether its result is not wanted any more.
    var wasCancelled: Bool { get }

    /// It has ended with libcurl's result.
    func end(_ result: CURLcode)

    /// It was aborted.
    func fail(_ error: HTTPCallError)
}

/// The body of a thread that transfers: libcurl's multi handle, and the mailbox for other threads.
package final class TransferWorker: Sendable {
    private struct Mailbox {
        var pending: [any PendingTransfer] = []
        var isStopping = false
    }

    private let mailbox = Lock(Mailbox())
    private let multi: MultiHandle

    /// - Parameter keptConnections: how many idle connections are kept for later transfers.
    package init(keptConnections: Int) throws(HTTPCallError) {
        // Whoever adds transfers limits their number; a limit on connections would be shared by all purposes.
        guard let multi = MultiHandle(keptConnections: keptConnections) else { throw .setUpFailed }
        self.multi = multi
    }

    /// Enqueues a transfer.
    /// - Returns: the error if it was rejected.
    package func add(_ transfer: any PendingTransfer) -> HTTPCallError? {
        let isAccepted = mailbox.withLock { mailbox in
            guard !mailbox.isStopping else { return false }
            mailbox.pending.append(transfer)
            return true
        }
        guard isAccepted else { return .stopped }
        multi.wake()
        return nil
    }

    /// Wakes the thread to remove cancelled transfers.
    package func noteCancellation() { multi.wake() }

    /// Stops the thread, which first fails all transfers.
    package func stop() {
        mailbox.withLock { $0.isStopping = true }
        multi.wake()
    }
}

// MARK: - The thread

extension TransferWorker {
    /// The main loop of the thread.
    package func run() {
        var transfers: [UInt: any RunningTransfer] = [:]
        while true {
            let (pending, isStopping) = mailbox.withLock { mailbox in
                let pending = mailbox.pending
                mailbox.pending = []
                return (pending, mailbox.isStopping)
            }
            for transfer in pending { begin(transfer, &transfers) }
            if isStopping { break }
            dropCancelled(&transfers)
            multi.perform()
            collect(&transfers)
            multi.wait()
        }
        for transfer in Array(transfers.values) { abort(transfer, .stopped) }
        transfers.removeAll()
        multi.close()
    }

    private func begin(_ pending: any PendingTransfer, _ transfers: inout [UInt: any RunningTransfer]) {
        do throws(HTTPCallError) {
            guard !pending.wasCancelled else { throw HTTPCallError.cancelled }
            let transfer = try pending.makeTransfer()
            guard unsafe multi.add(transfer.handle) else { throw HTTPCallError.setUpFailed }
            // libcurl's messages name a transfer by its handle.
            transfers[unsafe UInt(bitPattern: transfer.handle)] = transfer
        } catch {
            pending.fail(error)
        }
    }

    private func dropCancelled(_ transfers: inout [UInt: any RunningTransfer]) {
        for (identity, transfer) in transfers where transfer.wasCancelled {
            transfers[identity] = nil
            abort(transfer, .cancelled)
        }
    }

    private func collect(_ transfers: inout [UInt: any RunningTransfer]) {
        while let finished = multi.nextFinished() {
            guard let transfer = transfers.removeValue(forKey: finished.identity) else { continue }
            unsafe multi.remove(transfer.handle)
            transfer.end(finished.result)
        }
    }

    private func abort(_ transfer: any RunningTransfer, _ error: HTTPCallError) {
        unsafe multi.remove(transfer.handle)
        transfer.fail(error)
    }
}
