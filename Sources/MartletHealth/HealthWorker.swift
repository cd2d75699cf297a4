private import CCurl
internal import MartletCore
private import Synchronization

/// The monitor's thread: libcurl's multi handle, and the book that decides.
// nonisolated(unsafe): other threads only wake the handle, which libcurl allows from any thread, and only under the
// lock before it is closed; everything else happens on this thread.
@safe final class HealthWorker: Sendable {
    private struct State {
        var book = HealthBook()
        var isStopping = false
        /// The thread has exited and the handle is freed.
        var isClosed = false
    }

    /// Connections that are kept for the next probe.
    private static let keptConnections = 1024
    private static let longestWait: Int32 = 60_000

    private let clock: Clock
    private let onChange: @Sendable ([HealthChange]) -> Void
    private let state = Mutex(State())
    // Used by the worker's own thread only, except for curl_multi_wakeup(3), which any thread may call.
    private nonisolated(unsafe) let multi: UnsafeMutableRawPointer

    init?(_ clock: Clock, _ onChange: @escaping @Sendable ([HealthChange]) -> Void) {
        guard let multi = unsafe curl_multi_init() else { return nil }
        unsafe self.multi = multi
        self.clock = clock
        self.onChange = onChange
        _ = unsafe martlet_curl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, Self.keptConnections)
    }

    var counts: [String: HealthCounts] { state.withLock { $0.book.counts } }

    func follow(_ targets: [HealthTarget]) {
        let now = clock.monotonicTime
        state.withLock { state in
            state.book.adopt(targets, at: now)
            wake(state)
        }
    }

    func stop() {
        state.withLock { state in
            state.isStopping = true
            wake(state)
        }
    }

    /// Frees the handle of a worker whose thread has not been started.
    func discard() {
        state.withLock { $0.isClosed = true }
        _ = unsafe curl_multi_cleanup(multi)
    }

    private func wake(_ state: State) {
        if !state.isClosed { _ = unsafe curl_multi_wakeup(multi) }
    }
}

// MARK: - The thread

extension HealthWorker {
    /// The handles of probes in flight, and those that wait for their next probe.
    private struct Transfers {
        var active: [UInt: ProbeTransfer] = [:]
        var idle: [ProbeTransfer] = []
    }

    /// The main loop of the thread.
    func run() {
        var transfers = Transfers()
        while !state.withLock(\.isStopping) {
            var changes = startDue(&transfers)
            var running: Int32 = 0
            _ = unsafe curl_multi_perform(multi, &running)
            changes += collect(&transfers)
            if !changes.isEmpty { onChange(changes) }
            _ = unsafe curl_multi_poll(multi, nil, 0, wait, nil)
        }
        for transfer in transfers.active.values { _ = unsafe curl_multi_remove_handle(multi, transfer.handle) }
        transfers = Transfers()
        state.withLock { $0.isClosed = true }
        _ = unsafe curl_multi_cleanup(multi)
    }

    /// Milliseconds until the next probe begins.
    private var wait: Int32 {
        guard let next = state.withLock(\.book.nextStart) else { return Self.longestWait }
        let nanoseconds = max(next.since(clock.monotonicTime).wholeNanoseconds, 0)
        return min(Int32(clamping: nanoseconds / 1_000_000 + (nanoseconds % 1_000_000 == 0 ? 0 : 1)), Self.longestWait)
    }

    private func startDue(_ transfers: inout Transfers) -> [HealthChange] {
        var changes: [HealthChange] = []
        while true {
            let now = clock.monotonicTime
            let (next, keeps) = state.withLock { ($0.book.begin(at: now), $0.book.keepsConnections) }
            guard let (target, request) = next else { return changes }
            guard request.destination != nil else {
                changes += finish(target, .failure("the host name has no address"))
                continue
            }
            guard let transfer = transfers.idle.popLast() ?? ProbeTransfer(),
                transfer.prepare(target, request, keepsConnection: keeps),
                unsafe curl_multi_add_handle(multi, transfer.handle) == CURLM_OK
            else {
                changes += finish(target, .failure("libcurl setup failed"))
                continue
            }
            transfers.active[transfer.identity] = transfer
        }
    }

    private func collect(_ transfers: inout Transfers) -> [HealthChange] {
        var changes: [HealthChange] = []
        var left: Int32 = 0
        while let message = unsafe curl_multi_info_read(multi, &left) {
            guard unsafe message.pointee.msg == CURLMSG_DONE, let handle = unsafe message.pointee.easy_handle,
                let transfer = transfers.active.removeValue(forKey: UInt(bitPattern: handle))
            else { continue }
            let result = transfer.result(unsafe martlet_curl_result(message))
            _ = unsafe curl_multi_remove_handle(multi, transfer.handle)
            transfers.idle.append(transfer)
            changes += finish(transfer.target, result)
        }
        return changes
    }

    private func finish(_ target: Int, _ result: ProbeResult) -> [HealthChange] {
        let (now, random) = (clock.monotonicTime, Double.random(in: 0...1))
        let change = state.withLock { $0.book.finish(target, result, at: now, random: random) }
        return change.map { [$0] } ?? []
    }
}
