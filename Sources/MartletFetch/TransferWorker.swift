package import CCurl
package import MartletCore
private import Synchronization

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
// nonisolated(unsafe): other threads only wake the handle, which libcurl allows from any thread, and only under the
// mailbox's lock before it is closed; everything else happens on this thread.
@safe package final class TransferWorker: Sendable {
    private struct Mailbox {
        var pending: [any PendingTransfer] = []
        var isStopping = false
        /// The thread has exited and the handle is freed.
        var isClosed = false
    }

    /// Whether libcurl is initialized; done once per process.
    static let isStarted = martlet_curl_start() == CURLE_OK
    private static let pollMilliseconds: Int32 = 60_000

    private let mailbox = Mutex(Mailbox())
    // Used by the worker's own thread only, except for curl_multi_wakeup(3), which any thread may call.
    private nonisolated(unsafe) let multi: UnsafeMutableRawPointer

    /// - Parameter keptConnections: how many idle connections are kept for later transfers.
    package init(keptConnections: Int) throws(HTTPCallError) {
        guard TransferWorker.isStarted, let multi = unsafe curl_multi_init() else { throw .setUpFailed }
        unsafe self.multi = multi
        let limits: [(CURLMoption, Int)] = [
            // Whoever adds transfers limits their number; a limit on connections would be shared by all purposes.
            (CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX)), (CURLMOPT_MAXCONNECTS, keptConnections),
        ]
        for (option, value) in limits { _ = unsafe martlet_curl_multi_set_long(multi, option, value) }
    }

    /// Enqueues a transfer.
    /// - Returns: the error if it was rejected.
    package func add(_ transfer: any PendingTransfer) -> HTTPCallError? {
        mailbox.withLock { mailbox in
            guard !mailbox.isStopping else { return .stopped }
            mailbox.pending.append(transfer)
            wake(mailbox)
            return nil
        }
    }

    /// Wakes the thread to remove cancelled transfers.
    package func noteCancellation() { mailbox.withLock { wake($0) } }

    /// Stops the thread, which first fails all transfers.
    package func stop() {
        mailbox.withLock { mailbox in
            mailbox.isStopping = true
            wake(mailbox)
        }
    }

    private func wake(_ mailbox: Mailbox) {
        if !mailbox.isClosed { _ = unsafe curl_multi_wakeup(multi) }
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
            var running: Int32 = 0
            _ = unsafe curl_multi_perform(multi, &running)
            collect(&transfers)
            _ = unsafe curl_multi_poll(multi, nil, 0, TransferWorker.pollMilliseconds, nil)
        }
        for transfer in Array(transfers.values) { abort(transfer, .stopped) }
        transfers.removeAll()
        mailbox.withLock { $0.isClosed = true }
        _ = unsafe curl_multi_cleanup(multi)
    }

    private func begin(_ pending: any PendingTransfer, _ transfers: inout [UInt: any RunningTransfer]) {
        do throws(HTTPCallError) {
            guard !pending.wasCancelled else { throw HTTPCallError.cancelled }
            let transfer = try pending.makeTransfer()
            guard unsafe curl_multi_add_handle(multi, transfer.handle) == CURLM_OK else {
                throw HTTPCallError.setUpFailed
            }
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
        var left: Int32 = 0
        while let message = unsafe curl_multi_info_read(multi, &left) {
            guard unsafe message.pointee.msg == CURLMSG_DONE, let handle = unsafe message.pointee.easy_handle,
                let transfer = transfers.removeValue(forKey: UInt(bitPattern: handle))
            else { continue }
            let result = unsafe martlet_curl_result(message)
            _ = unsafe curl_multi_remove_handle(multi, transfer.handle)
            transfer.end(result)
        }
    }

    private func abort(_ transfer: any RunningTransfer, _ error: HTTPCallError) {
        _ = unsafe curl_multi_remove_handle(multi, transfer.handle)
        transfer.fail(error)
    }
}
