internal import MartletCore
internal import MartletHTTP

/// The PROXY protocol: the client address that a trusted load balancer sends.
extension EventLoop {
    /// Handles bytes of the header, and perhaps of what follows it.
    mutating func receiveProxyHeader(_ downstream: Handle<DownstreamConnection>, _ bytes: UnsafeBufferPointer<UInt8>) {
        unsafe loop.downstreams[downstream].reader.input.append(bytes)
        let received = unsafe loop.downstreams[downstream].reader.input.bytes
        switch unsafe ProxyHeader.parse(received.span) {
        case .needMore: return
        case .failure(let failure):
            return loop.rejectProxyHeader(downstream, failure.code)
        case .complete(let count, let peer):
            switch peer {
            case .address(let address):
                guard loop.downstreams.applyProxyAddress(downstream, address, &loop.context) else {
                    return loop.close(downstream: downstream)
                }
            // A client that the balancer does not identify: its forwarding headers are not trusted.
            case .unknown: loop.downstreams[downstream].origin.address.isTrusted = false
            case .local: break
            }
            loop.downstreams[downstream].reader.input.consume(count)
        }
        loop.downstreams.startTransport(downstream, &loop.context)
        guard !loop.downstreams[downstream].reader.input.isEmpty else {
            return loop.downstreams[downstream].reader.input.release()
        }
        var rest = ByteBuffer()
        swap(&rest, &loop.downstreams[downstream].reader.input)
        unsafe receivedBytes(downstream, rest.bytes)
    }
}
