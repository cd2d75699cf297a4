internal import MartletDecisions
internal import MartletResponder

/// Whose connections to upstreams they are, where descriptors get scarce.
extension RequestForwarder {
    /// Takes the descriptor of a new connection for a request, or rejects the request.
    static func takeDescriptor(for exchange: Handle<Exchange>, _ loop: inout LoopState) -> DescriptorCharge? {
        let network = loop.exchanges[exchange].clientNetwork(&loop.downstreams)
        if let charge = loop.upstreams.descriptors.take(for: network) { return charge }
        // An idle connection, to whatever endpoint, makes room.
        if loop.upstreams.descriptors.isFull, let idle = loop.upstreams.directory.anyIdle() {
            loop.upstreams.close(idle, &loop.context)
            if let charge = loop.upstreams.descriptors.take(for: network) { return charge }
        }
        loop.reject(exchange, .tooManyUpstreamConnections)
        return nil
    }

    /// Counts an idle connection for the network of a request, or leaves it idle and rejects the request.
    @inline(never)
    static func mayReuse(
        _ upstream: Handle<UpstreamConnection>, for exchange: Handle<Exchange>, _ loop: inout LoopState
    ) -> Bool {
        let network = loop.exchanges[exchange].clientNetwork(&loop.downstreams)
        let lent = unsafe loop.upstreams.all.address(of: upstream)
        if unsafe loop.upstreams.descriptors.use(&lent.pointee.descriptor, by: network) { return true }
        loop.upstreams.directory.endpoints[Int(loop.upstreams[upstream].endpoint)].idle.append(upstream)
        loop.reject(exchange, .tooManyUpstreamConnections)
        return false
    }
}
