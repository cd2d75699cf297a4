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

extension AddressRange: ConfigurationValue, Spelling {
    /// `10.0.0.0/8`, `fd00::/8`, or one address.
    package init(decoding node: ConfigurationNode) throws(ConfigurationError) {
        let text = try node.text()
        let parts = text.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = parts.first, let bytes = HostAndPort.addressBytes(String(address)) else {
            throw node.error(
                .configBadAddress, "\(quoted(text)) is not an address block such as 10.0.0.0/8 or fd00::/8")
        }
        var length = bytes.count * 8
        if parts.count == 2 {
            guard let number = HostAndPort.parsePort(Array(parts[1].utf8)[...]), Int(number) <= length else {
                throw node.error(.configBadAddress, "\(quoted(text)) must end in a prefix length from 0 to \(length)")
            }
            length = Int(number)
        }
        let isIPv4 = bytes.count == 4
        let mapped = isIPv4 ? [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF] + bytes : bytes
        self.init(network: mapped, prefixLength: isIPv4 ? length + 96 : length)
        guard hasNoHostBits else {
            throw node.error(.configBadAddress, "\(quoted(text)) has host bits set beyond its prefix length \(length)")
        }
    }

    private var hasNoHostBits: Bool {
        network.enumerated().allSatisfy { index, byte in
            let bits = min(max(prefixLength - index * 8, 0), 8)
            return byte & UInt8(truncatingIfNeeded: 0xFF >> bits) == 0
        }
    }

    /// Whether it contains every address of a family.
    var isEverything: Bool {
        prefixLength == 0 || (prefixLength == 96 && network.dropFirst(10).prefix(2) == [0xFF, 0xFF])
    }
}
