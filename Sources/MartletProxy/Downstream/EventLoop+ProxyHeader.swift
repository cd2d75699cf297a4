internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletIO
internal import MartletReports

/// The PROXY protocol: the client address that a trusted load balancer sends.
extension EventLoop {
    /// Waits for the PROXY protocol header.
    mutating func awaitProxyHeader(_ downstream: Handle<DownstreamConnection>) {
        // Any other peer could claim any address: closed without a response. A Unix socket is protected by its
        // permissions.
        guard downstreams[downstream].origin.address.isTrusted || downstreams[downstream].origin.address.isUnix else {
            return rejectProxyHeader(downstream, "proxy_protocol.untrusted_peer")
        }
        downstreams[downstream].phase = .proxyHeader
        arm(downstream: downstream, at: now &+ snapshot.loopTimeouts.requestHead)
    }

    /// Handles bytes of the header, and perhaps of what follows it.
    mutating func receiveProxyHeader(_ downstream: Handle<DownstreamConnection>, _ bytes: UnsafeBufferPointer<UInt8>) {
        unsafe downstreams[downstream].reader.input.append(bytes)
        let received = unsafe downstreams[downstream].reader.input.bytes
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
            case .unknown: downstreams[downstream].origin.address.isTrusted = false
            case .local: break
            }
            downstreams[downstream].reader.input.consume(count)
        }
        startTransport(downstream)
        guard !downstreams[downstream].reader.input.isEmpty else {
            return downstreams[downstream].reader.input.release()
        }
        var rest = ByteBuffer()
        swap(&rest, &downstreams[downstream].reader.input)
        unsafe receivedBytes(downstream, rest.bytes)
    }

    private mutating func rejectProxyHeader(_ downstream: Handle<DownstreamConnection>, _ code: ErrorCode) {
        counters.proxyHeaderRejected(code)
        if debug.isOn {
            debug.connection(
                "PROXY header rejected", code, client: downstreams[downstream].origin.address.text.description)
        }
        close(downstream: downstream)
    }

    /// Applies the client address of the header.
    ///
    /// - Returns: `false` where that address has too many connections.
    private mutating func applyProxyAddress(
        _ downstream: Handle<DownstreamConnection>, _ address: ProxyHeader.Address
    ) -> Bool {
        let octets = address.bytes
        acceptor.release(downstreams[downstream].origin.peerBytes, downstreams[downstream].origin.admission)
        downstreams[downstream].origin.admission = acceptor.admit(octets, limits: snapshot.limits)
        guard downstreams[downstream].origin.admission != .refused else {
            counters.connections.refused &+= 1
            return false
        }
        downstreams[downstream].origin.peerBytes = octets
        downstreams[downstream].origin.address = DownstreamAddress(
            bytes: octets, text: AddressText(SocketEndpoint.text(of: octets).utf8),
            isTrusted: snapshot.trustedProxies.contains { $0.contains(octets) }, port: address.port)
        return true
    }
}
