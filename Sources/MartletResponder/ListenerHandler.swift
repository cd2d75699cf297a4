/// Handles requests on a listener before anything is routed.
package final class ListenerHandler: Sendable {
    /// The one path that it accepts; `nil` accepts all.
    private let path: [UInt8]?
    private let areTasksStalled: @Sendable () -> Bool
    package let respond: LocalHandler

    /// - Parameters:
    ///   - path: `nil` accepts every request.
    ///   - areTasksStalled: whether no task runs, so that nothing would come of `respond`; takes no lock.
    package init(
        path: String? = nil, areTasksStalled: @escaping @Sendable () -> Bool = { false },
        _ respond: @escaping LocalHandler
    ) {
        self.path = path.map { Array($0.utf8) }
        self.areTasksStalled = areTasksStalled
        self.respond = respond
    }

    /// The same for one path.
    package func at(_ path: String) -> ListenerHandler {
        ListenerHandler(path: path, areTasksStalled: areTasksStalled, respond)
    }

    /// What every request gets while no task runs; `nil` otherwise.
    package var responseWithoutTask: LocalResponse? { areTasksStalled() ? .stalled : nil }

    /// Whether it handles requests for a path, as received.
    package func handles(_ received: UnsafeBufferPointer<UInt8>) -> Bool {
        guard let path else { return true }
        return unsafe path.count == received.count && path.elementsEqual(received)
    }
}
