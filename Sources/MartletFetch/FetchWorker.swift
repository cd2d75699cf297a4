private import CCurl
internal import MartletCore
private import Synchronization

/// The fetcher's thread: libcurl's multi handle, and the mailbox for other threads.
// nonisolated(unsafe): other threads only wake the handle, which libcurl allows from any thread, and only under the
// mailbox's lock before it is closed; everything else happens on this thread.
@safe final class FetchWorker: Sendable {
    private struct Mailbox {
        var fetches: [PendingFetch] = []
        var isStopping = false
        /// The thread has exited and the handle is freed.
        var isClosed = false
    }

    private static let pollMilliseconds: Int32 = 60_000

    private let options: FetchOptions
    private let mailbox = Mutex(Mailbox())
    // Used by the worker's own thread only, except for curl_multi_wakeup(3), which any thread may call.
    private nonisolated(unsafe) let multi: UnsafeMutableRawPointer

    init(_ options: FetchOptions) throws(HTTPCallError) {
        guard let multi = unsafe curl_multi_init() else { throw .setUpFailed }
        unsafe self.multi = multi
        self.options = options
        let limits: [(CURLMoption, Int)] = [
            // Slots limit the number of connections; a limit here would be shared by all purposes.
            (CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX)), (CURLMOPT_MAXCONNECTS, 16),
        ]
        for (option, value) in limits { _ = unsafe martlet_curl_multi_set_long(multi, option, value) }
    }

    /// Enqueues a request that has a slot.
    /// - Returns: the error if it was rejected.
    func add(_ fetch: PendingFetch) -> HTTPCallError? {
        mailbox.withLock { mailbox in
            guard !mailbox.isStopping else { return .stopped }
            mailbox.fetches.append(fetch)
            wake(mailbox)
            return nil
        }
    }

    /// Wakes the thread to remove cancelled requests.
    func noteCancellation() { mailbox.withLock { wake($0) } }

    /// Stops the thread, which first fails all pending requests.
    func stop() {
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

extension FetchWorker {
    /// The main loop of the thread.
    func run() {
        var transfers: [UInt: FetchTransfer] = [:]
        while true {
            let (fetches, isStopping) = mailbox.withLock { mailbox in
                let fetches = mailbox.fetches
                mailbox.fetches = []
                return (fetches, mailbox.isStopping)
            }
            for fetch in fetches { begin(fetch, &transfers) }
            if isStopping { break }
            dropCancelled(&transfers)
            var running: Int32 = 0
            _ = unsafe curl_multi_perform(multi, &running)
            collect(&transfers)
            _ = unsafe curl_multi_poll(multi, nil, 0, FetchWorker.pollMilliseconds, nil)
        }
        for transfer in Array(transfers.values) { end(transfer, .failure(.stopped)) }
        transfers.removeAll()
        mailbox.withLock { $0.isClosed = true }
        _ = unsafe curl_multi_cleanup(multi)
    }

    private func begin(_ fetch: PendingFetch, _ transfers: inout [UInt: FetchTransfer]) {
        do throws(HTTPCallError) {
            guard !fetch.wasCancelled else { throw HTTPCallError.cancelled }
            let transfer = try FetchTransfer(fetch, options: options)
            guard unsafe curl_multi_add_handle(multi, transfer.handle) == CURLM_OK else {
                throw HTTPCallError.setUpFailed
            }
            transfers[transfer.identity] = transfer
        } catch {
            fetch.finish(.failure(error))
        }
    }

    private func dropCancelled(_ transfers: inout [UInt: FetchTransfer]) {
        for (identity, transfer) in transfers where transfer.fetch.wasCancelled {
            transfers[identity] = nil
            end(transfer, .failure(.cancelled))
        }
    }

    private func collect(_ transfers: inout [UInt: FetchTransfer]) {
        var left: Int32 = 0
        while let message = unsafe curl_multi_info_read(multi, &left) {
            guard unsafe message.pointee.msg == CURLMSG_DONE, let handle = unsafe message.pointee.easy_handle,
                let transfer = transfers.removeValue(forKey: UInt(bitPattern: handle))
            else { continue }
            end(transfer, transfer.outcome(unsafe martlet_curl_result(message)))
        }
    }

    private func end(_ transfer: FetchTransfer, _ outcome: PendingFetch.Outcome) {
        _ = unsafe curl_multi_remove_handle(multi, transfer.handle)
        transfer.fetch.finish(outcome)
    }
}
