private import CLinux
internal import MartletTLS

/// An idle connection on its way from the loop that had it to another one, where a request waits for it.
///
/// One loop has it at a time: the first fills it and lets go of it, the second takes what is in it. It is counted among
/// the connections of its upstream, and has its descriptor, all the while.
final class HandedConnection: @unchecked Sendable {
    /// What a connection consists of while no request is on it.
    struct Parts: ~Copyable {
        let fd: Int32
        let isSecure: Bool
        var engine: TLSEngine?
        /// Exchanges it has carried.
        let served: Int
        /// When it has been idle for long enough, and how long that is, in nanoseconds.
        let deadline, idleTimeout: Int64
        var counter: CounterEntry
        var descriptor: DescriptorCharge
    }

    let endpoint: EndpointKey
    private var parts: Parts?
    private var descriptors: LoopDescriptors

    init(_ parts: consuming Parts, of endpoint: EndpointKey, _ descriptors: LoopDescriptors) {
        self.endpoint = endpoint
        self.parts = consume parts
        self.descriptors = descriptors
    }

    func take() -> Parts? { parts.take() }

    /// Where no loop has any use for it: one has ended, or does not know the endpoint.
    deinit {
        guard var parts = parts.take() else { return }
        parts.counter.leave()
        descriptors.release(&parts.descriptor)
        _ = CLinux.close(parts.fd)
    }
}
