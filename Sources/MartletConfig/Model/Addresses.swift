/// An address to listen on or connect to.
@frozen package enum SocketAddress: Sendable, Hashable {
    /// An IPv4 literal, an IPv6 literal without brackets, and a port (0 lets the system choose).
    case ip(host: String, port: UInt16)
    case unix(path: String)
    /// A listening socket inherited as a descriptor (`fd:3`).
    case descriptor(Int32)
}

/// A CIDR block of `trusted_proxies`, IPv4 stored as IPv4-mapped IPv6.
@frozen package struct AddressRange: Sendable, Hashable {
    /// 16 bytes in network order.
    package var network: [UInt8]
    /// 0…128 (an IPv4 `/24` is 120).
    package var prefixLength: Int

    package init(network: [UInt8], prefixLength: Int) {
        self.network = network
        self.prefixLength = prefixLength
    }

    /// Whether an address (16 bytes, IPv4 mapped) lies in the block.
    package func contains(_ address: [UInt8]) -> Bool {
        guard address.count == 16, network.count == 16 else { return false }
        let whole = prefixLength / 8
        guard address[..<whole].elementsEqual(network[..<whole]) else { return false }
        guard prefixLength % 8 > 0 else { return true }
        let mask = ~(0xFF as UInt8 >> UInt8(prefixLength % 8))
        return address[whole] & mask == network[whole] & mask
    }
}
