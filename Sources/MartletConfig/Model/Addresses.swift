/// A place to listen on or connect to.
package enum SocketAddress: Sendable, Hashable {
    /// An IPv4 literal, an IPv6 literal without brackets, and a port (0 lets the system choose).
    case ip(host: String, port: UInt16)
    case unix(path: String)
}

/// A CIDR block of `trusted_proxies`, IPv4 held as IPv4-mapped IPv6.
package struct AddressRange: Sendable, Hashable {
    /// 16 bytes in network order.
    package var network: [UInt8]
    /// 0…128 (an IPv4 `/24` is 120).
    package var prefixLength: Int

    package init(network: [UInt8], prefixLength: Int) {
        self.network = network
        self.prefixLength = prefixLength
    }
}
