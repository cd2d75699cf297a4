internal import MartletConfig
internal import MartletCore
internal import MartletHTTP
internal import MartletIO

/// The PROXY protocol: who the client of a trusted load balancer is.
extension Worker {
    /// A connection that must begin with a PROXY protocol header.
    mutating func awaitProxyHeader(_ client: Int32) {
        // Anybody else could claim any address: closed without an answer.
        // Who may open a Unix socket is a matter of its permissions.
        guard clients[client].address.isTrusted || clients[client].address.isUnix else {
            return refuseProxyHeader(client, "proxy_protocol.untrusted_peer")
        }
        clients[client].phase = .proxyHeader
        arm(client: client, at: now &+ snapshot.patience.requestHead)
    }

    /// Bytes of the header have come, and perhaps of what follows it.
    mutating func useProxyHeader(_ client: Int32, _ bytes: UnsafeBufferPointer<UInt8>) {
        unsafe clients[client].input.append(bytes)
        let received = unsafe clients[client].input.bytes
        switch unsafe ProxyHeader.parse(received.span) {
        case .needMore: return
        case .failure(let failure):
            return refuseProxyHeader(client, failure.code)
        case .complete(let count, let peer):
            switch peer {
            case .address(let address): guard rename(client, address) else { return close(client: client) }
            // Somebody's whom the balancer cannot name: what such a client says of others is a stranger's word.
            case .unknown: clients[client].address.isTrusted = false
            case .local: break
            }
            clients[client].input.consume(count)
        }
        beginWire(client)
        guard !clients[client].input.isEmpty else { return clients[client].input.release() }
        var rest = ByteBuffer()
        swap(&rest, &clients[client].input)
        unsafe arrived(client, rest.bytes)
    }

    private mutating func refuseProxyHeader(_ client: Int32, _ code: ErrorCode) {
        counters.proxyHeaderRefused(code)
        if debug.isOn {
            debug.connection("a PROXY header was refused", code, client: clients[client].address.text.description)
        }
        close(client: client)
    }

    /// From here on the client has the address that the header tells.
    ///
    /// - Returns: `false` where that address has too many connections.
    private mutating func rename(_ client: Int32, _ address: ProxyHeader.Address) -> Bool {
        let octets = address.bytes
        connections.leave(clients[client].peerBytes, clients[client].admission)
        clients[client].admission = connections.enter(octets, limits: snapshot.limits)
        guard clients[client].admission != .refused else {
            counters.refused &+= 1
            return false
        }
        clients[client].peerBytes = octets
        clients[client].address = ClientAddress(
            bytes: octets, text: AddressText(SocketEndpoint.text(of: octets).utf8),
            isTrusted: snapshot.trustedProxies.contains { $0.contains(octets) }, port: address.port)
        return true
    }
}
