package import CCurl
internal import MartletCore

/// libcurl's multi handle: the transfers of one thread, which other threads may wake.
@safe package final class MultiHandle: Sendable {
    /// A transfer that has ended.
    package struct Finished {
        /// The address of its handle, by which libcurl names a transfer.
        package let identity: UInt
        package let result: CURLcode
    }

    /// Whether libcurl is initialized; done once per process.
    static let isStarted = martlet_curl_start() == CURLE_OK
    /// The longest wait, in milliseconds.
    private static let longestWait: Int32 = 60_000

    // Used by one thread only. Others only wake it, which libcurl allows from any thread (curl_multi_wakeup(3)), and
    // under the lock, so that it is not freed meanwhile.
    private nonisolated(unsafe) let handle: UnsafeMutableRawPointer
    private let isOpen = Lock(true)

    /// - Parameter keptConnections: how many idle connections are kept for later transfers; `nil` for libcurl's default.
    package init?(keptConnections: Int? = nil) {
        guard MultiHandle.isStarted, let handle = unsafe curl_multi_init() else { return nil }
        unsafe self.handle = handle
        if let keptConnections {
            _ = unsafe martlet_curl_multi_set_long(handle, CURLMOPT_MAXCONNECTS, keptConnections)
        }
    }

    deinit { close() }

    /// Ends the thread's wait; from any thread, at any time.
    package func wake() {
        isOpen.withLock { if $0 { _ = unsafe curl_multi_wakeup(handle) } }
    }

    // MARK: On the thread

    /// Begins a transfer.
    /// - Returns: `false` if libcurl does not take it.
    @unsafe package func add(_ transfer: UnsafeMutableRawPointer) -> Bool {
        unsafe curl_multi_add_handle(handle, transfer) == CURLM_OK
    }

    /// Lets go of a transfer, whether or not it has ended.
    @unsafe package func remove(_ transfer: UnsafeMutableRawPointer) {
        _ = unsafe curl_multi_remove_handle(handle, transfer)
    }

    /// Does what can be done without waiting.
    package func perform() {
        var running: Int32 = 0
        _ = unsafe curl_multi_perform(handle, &running)
    }

    /// A transfer that has ended and was not returned before; it is still to be removed.
    package func nextFinished() -> Finished? {
        var left: Int32 = 0
        while let message = unsafe curl_multi_info_read(handle, &left) {
            guard unsafe message.pointee.msg == CURLMSG_DONE, let transfer = unsafe message.pointee.easy_handle
            else { continue }
            return unsafe Finished(identity: UInt(bitPattern: transfer), result: martlet_curl_result(message))
        }
        return nil
    }

    /// Waits until a transfer can go on, the thread is woken, or the time is over.
    /// - Parameter limit: at most a minute.
    package func wait(atMost limit: Duration = .seconds(60)) {
        let nanoseconds = max(limit.wholeNanoseconds, 0)
        let milliseconds = nanoseconds / 1_000_000 + (nanoseconds % 1_000_000 == 0 ? 0 : 1)
        _ = unsafe curl_multi_poll(handle, nil, 0, min(Int32(clamping: milliseconds), Self.longestWait), nil)
    }

    /// Frees the handle, with no transfer left in it.
    package func close() {
        isOpen.withLock { isOpen in
            guard isOpen else { return }
            isOpen = false
            _ = unsafe curl_multi_cleanup(handle)
        }
    }
}
