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
