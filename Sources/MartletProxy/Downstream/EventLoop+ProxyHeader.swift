internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletIO

/// The PROXY protocol: the client address that a trusted load balancer sends.
extension EventLoop {
    /// Waits for the PROXY protocol header.
    mutating func awaitProxyHeader(_ downstream: Int32) {
        // Any other peer could claim any address: closed without a response. A Unix socket is protected by its
        // permissions.
        guard downstreams[downstream].address.isTrusted || downstreams[downstream].address.isUnix else {
            return rejectProxyHeader(downstream, "proxy_protocol.untrusted_peer")
        }
        downstreams[downstream].phase = .proxyHeader
        arm(downstream: downstream, at: now &+ snapshot.loopTimeouts.requestHead)
    }

    /// Handles bytes of the header, and perhaps of what follows it.
    mutating func receiveProxyHeader(_ downstream: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        unsafe downstreams[downstream].input.append(bytes)
        let received = unsafe downstreams[downstream].input.bytes
        switch unsafe ProxyHeader.parse(received.span) {
        case .needMore: return
        case .failure(let failure):
            return rejectProxyHeader(downstream, failure.code)
        case .complete(let count, let peer):
            switch peer {
            case .address(let address):
                guard applyProxyAddress(downstream, address) else {
                    return close(downstream: downstream)
                }
            // A client that the balancer does not identify: its forwarding headers are not trusted.
            case .unknown: downstreams[downstream].address.isTrusted = false
            case .local: break
            }
            downstreams[downstream].input.consume(count)
        }
        startTransport(downstream)
        guard !downstreams[downstream].input.isEmpty else { return downstreams[downstream].input.release() }
        var rest = ByteBuffer()
        swap(&rest, &downstreams[downstream].input)
        unsafe receivedBytes(downstream, rest.bytes)
    }

    private mutating func rejectProxyHeader(_ downstream: Int32, _ code: ErrorCode) {
        counters.proxyHeaderRejected(code)
        if debug.isOn {
            debug.connection(
                "PROXY header rejected", code, client: downstreams[downstream].address.text.description)
        }
        close(downstream: downstream)
    }

    /// Applies the client address of the header.
    ///
    /// - Returns: `false` where that address has too many connections.
    private mutating func applyProxyAddress(_ downstream: Int32, _ address: ProxyHeader.Address) -> Bool {
        let octets = address.bytes
        connections.leave(downstreams[downstream].peerBytes, downstreams[downstream].admission)
        downstreams[downstream].admission = connections.enter(octets, limits: snapshot.limits)
        guard downstreams[downstream].admission != .refused else {
            counters.refused &+= 1
            return false
        }
        downstreams[downstream].peerBytes = octets
        downstreams[downstream].address = DownstreamAddress(
            bytes: octets, text: AddressText(SocketEndpoint.text(of: octets).utf8),
            isTrusted: snapshot.trustedProxies.contains { $0.contains(octets) }, port: address.port)
        return true
    }
}
