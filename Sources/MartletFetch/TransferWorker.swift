package import CCurl
private import CLinux
package import MartletCore

/// What a ``TransferWorker`` transfers.
package protocol Transfer: Sendable {
    /// Whether its result is not wanted any more.
    var wasCancelled: Bool { get }

    /// Its handle with all options, made on the thread.
    func makeHandle() throws(HTTPCallError) -> EasyHandle

    /// It has ended with libcurl's result; called on the thread.
    func end(_ result: CURLcode, of handle: EasyHandle)

    /// It has not begun, or was aborted.
    func fail(_ error: HTTPCallError)
}

extension Transfer {
    /// It is always wanted.
    package var wasCancelled: Bool { false }
}

/// Decides when transfers begin that are not added from outside; asked on the worker's thread.
package protocol TransferPlan: Sendable {
    /// The transfers that begin now.
    func begin() -> [any Transfer]

    /// How long the worker may wait, now that those which had ended are noted; `nil` ends the thread.
    func pause() -> Duration?

    /// The thread has aborted what was left, and ends.
    func close()
}

extension TransferPlan {
    /// Nothing is to be done.
    package func close() {}
}

/// A thread that transfers with libcurl, many at a time.
package final class TransferWorker: Sendable {
    private let loop: TransferLoop
    private let thread: SystemThread

    /// Starts the thread.
    /// - Parameters:
    ///   - keptConnections: how many idle connections are kept for later transfers; `nil` for libcurl's default.
    ///   - plan: begins transfers of its own accord.
    package init(name: String, keptConnections: Int? = nil, plan: (any TransferPlan)? = nil) throws(HTTPCallError) {
        guard let loop = TransferLoop(keptConnections: keptConnections) else { throw .setUpFailed }
        self.loop = loop
        do {
            thread = try SystemThread(name: name) { loop.run(plan) }
        } catch {
            throw HTTPCallError(code: .fetchFailed, message: error.message)
        }
    }

    /// Begins a transfer, or fails it if the thread is stopped.
    package func add(_ transfer: any Transfer) { if !loop.add(transfer) { transfer.fail(.stopped) } }

    /// Tells the thread that a transfer was cancelled, or that its plan has changed.
    package func wake() { loop.wake() }

    /// Stops the thread, which first fails all transfers.
    package func stop() { loop.stop() }

    /// Stops the thread, and waits for its end.
    package func shutdown() {
        loop.stop()
        thread.join()
    }
}

/// The body of the thread: libcurl's multi handle, and the mailbox for other threads.
@safe private final class TransferLoop: Sendable {
    private struct Mailbox {
        var added: [any Transfer] = []
        var isStopping = false
        /// Whether the handle exists.
        var isOpen = true
    }

    private struct Running {
        let transfer: any Transfer
        let handle: EasyHandle
    }

    /// The longest wait, in milliseconds.
    private static let longestWait: Int32 = 60_000

    // Used by the thread only. Others only wake it, which libcurl allows from any thread (curl_multi_wakeup(3)), and
    // under the lock, so that it is not freed meanwhile.
    private nonisolated(unsafe) let multi: UnsafeMutableRawPointer
    private let mailbox = Lock(Mailbox())

    init?(keptConnections: Int?) {
        guard EasyHandle.isStarted, let multi = unsafe curl_multi_init() else { return nil }
        unsafe self.multi = multi
        // Without descriptors for it libcurl makes a handle that cannot be woken.
        guard signal() else { return nil }
        // Whoever adds transfers limits their number; a limit on connections would be shared by all purposes.
        if let keptConnections {
            _ = unsafe martlet_curl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, keptConnections)
        }
    }

    deinit { _ = close() }

    /// - Returns: whether the thread will see the transfer.
    func add(_ transfer: any Transfer) -> Bool {
        mailbox.withLock { mailbox in
            guard !mailbox.isStopping else { return false }
            mailbox.added.append(transfer)
            _ = signal()
            return true
        }
    }

    func wake() { mailbox.withLock { if $0.isOpen { _ = signal() } } }

    /// Has the thread return from its wait, which may be long: the kernel may have no memory for it at a time.
    private func signal() -> Bool {
        for _ in 0..<3 where unsafe curl_multi_wakeup(multi) == CURLM_OK { return true }
        return false
    }

    func stop() {
        mailbox.withLock { $0.isStopping = true }
        wake()
    }

    /// Frees the handle, with no transfer left in it.
    /// - Returns: the transfers that have not begun.
    private func close() -> [any Transfer] {
        mailbox.withLock { mailbox in
            if mailbox.isOpen { _ = unsafe curl_multi_cleanup(multi) }
            defer { mailbox = Mailbox(isStopping: true, isOpen: false) }
            return mailbox.added
        }
    }
}

// MARK: - The thread

extension TransferLoop {
    func run(_ plan: (any TransferPlan)?) {
        var running: [UInt: Running] = [:]
        while let added = takeAdded() {
            for transfer in added + (plan?.begin() ?? []) { begin(transfer, &running) }
            dropCancelled(&running)
            var count: Int32 = 0
            _ = unsafe curl_multi_perform(multi, &count)
            collect(&running)
            guard let pause = plan.map({ $0.pause() }) ?? .seconds(60) else { break }
            wait(atMost: pause)
        }
        for one in running.values { abort(one, .stopped) }
        for transfer in close() { transfer.fail(.stopped) }
        plan?.close()
    }

    /// - Returns: `nil` to stop.
    private func takeAdded() -> [any Transfer]? {
        mailbox.withLock { mailbox in
            guard !mailbox.isStopping else { return nil }
            defer { mailbox.added = [] }
            return mailbox.added
        }
    }

    private func begin(_ transfer: any Transfer, _ running: inout [UInt: Running]) {
        do throws(HTTPCallError) {
            guard !transfer.wasCancelled else { throw HTTPCallError.cancelled }
            let handle = try transfer.makeHandle()
            guard unsafe curl_multi_add_handle(multi, handle.pointer) == CURLM_OK else {
                throw HTTPCallError.setUpFailed
            }
            // libcurl's messages name a transfer by its handle.
            running[unsafe UInt(bitPattern: handle.pointer)] = Running(transfer: transfer, handle: handle)
        } catch {
            transfer.fail(error)
        }
    }

    private func dropCancelled(_ running: inout [UInt: Running]) {
        for (identity, one) in running where one.transfer.wasCancelled {
            running[identity] = nil
            abort(one, .cancelled)
        }
    }

    private func collect(_ running: inout [UInt: Running]) {
        var left: Int32 = 0
        while let message = unsafe curl_multi_info_read(multi, &left) {
            guard unsafe message.pointee.msg == CURLMSG_DONE,
                let one = unsafe running.removeValue(forKey: UInt(bitPattern: message.pointee.easy_handle))
            else { continue }
            // It is gone when the handle is removed.
            let result = unsafe martlet_curl_result(message)
            _ = unsafe curl_multi_remove_handle(multi, one.handle.pointer)
            one.transfer.end(result, of: one.handle)
        }
    }

    private func abort(_ one: Running, _ error: HTTPCallError) {
        _ = unsafe curl_multi_remove_handle(multi, one.handle.pointer)
        one.transfer.fail(error)
    }

    /// Waits until a transfer can go on, the thread is woken, or the time is over.
    private func wait(atMost limit: Duration) {
        let nanoseconds = max(limit.wholeNanoseconds, 0)
        let milliseconds = nanoseconds / 1_000_000 + (nanoseconds % 1_000_000 == 0 ? 0 : 1)
        let wait = min(Int32(clamping: milliseconds), Self.longestWait)
        // A poll that fails takes no time.
        guard unsafe curl_multi_poll(multi, nil, 0, wait, nil) != CURLM_OK else { return }
        usleep(1000 * UInt32(clamping: min(wait, 20)))
    }
}
