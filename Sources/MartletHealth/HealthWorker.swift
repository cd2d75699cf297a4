internal import MartletCore
private import MartletFetch

/// The monitor's thread: libcurl's multi handle, and the book that decides.
final class HealthWorker: Sendable {
    private struct State {
        var book = HealthBook()
        var isStopping = false
    }

    /// Connections that are kept for the next probe.
    private static let keptConnections = 1024

    private let clock: Clock
    private let onChange: @Sendable ([HealthChange]) -> Void
    private let state = Lock(State())
    private let multi: MultiHandle

    init?(_ clock: Clock, _ onChange: @escaping @Sendable ([HealthChange]) -> Void) {
        guard let multi = MultiHandle(keptConnections: Self.keptConnections) else { return nil }
        self.multi = multi
        self.clock = clock
        self.onChange = onChange
    }

    var counts: [String: HealthCounts] { state.withLock { $0.book.counts } }

    func follow(_ targets: [HealthTarget]) {
        let now = clock.monotonicTime
        state.withLock { $0.book.adopt(targets, at: now) }
        multi.wake()
    }

    func stop() {
        state.withLock { $0.isStopping = true }
        multi.wake()
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
            multi.perform()
            changes += collect(&transfers)
            if !changes.isEmpty { onChange(changes) }
            if let next = state.withLock(\.book.nextStart) {
                multi.wait(atMost: next.since(clock.monotonicTime))
            } else {
                multi.wait()
            }
        }
        for transfer in transfers.active.values { unsafe multi.remove(transfer.handle) }
        transfers = Transfers()
        multi.close()
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
                unsafe multi.add(transfer.handle)
            else {
                changes += finish(target, .failure("libcurl setup failed"))
                continue
            }
            transfers.active[transfer.identity] = transfer
        }
    }

    private func collect(_ transfers: inout Transfers) -> [HealthChange] {
        var changes: [HealthChange] = []
        while let finished = multi.nextFinished() {
            guard let transfer = transfers.active.removeValue(forKey: finished.identity) else { continue }
            let result = transfer.result(finished.result)
            unsafe multi.remove(transfer.handle)
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
