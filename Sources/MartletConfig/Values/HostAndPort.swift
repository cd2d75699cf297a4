private import CLinux

/// The `host[:port]` of URLs, endpoints and listeners.
enum HostAndPort {
    /// Splits and validates; IPv6 brackets are removed, and names are lowercased.
    /// - Parameter isAbsolute: whether a name may end with the dot of the root, which keeps resolvers from trying other
    ///   domains; it stays.
    static func parse(_ bytes: [UInt8], allowingFinalDot isAbsolute: Bool = false) -> (host: String, port: UInt16?)? {
        var host = bytes[...]
        var port: UInt16?
        if let colon = bytes.lastIndex(of: 0x3A), bytes.last != 0x5D {
            guard let number = parsePort(bytes[(colon + 1)...]) else { return nil }
            port = number
            host = bytes[..<colon]
        }
        if host.first == 0x5B {
            guard host.last == 0x5D,
                let literal = addressBytes(String(decoding: host.dropFirst().dropLast(), as: UTF8.self)),
                literal.count == 16
            else { return nil }
            return (String(decoding: host.dropFirst().dropLast(), as: UTF8.self).lowercased(), port)
        }
        let name = String(decoding: host, as: UTF8.self).lowercased()
        if isAbsolute, name.hasSuffix("."), addressBytes(name.withoutFinalDot) == nil {
            return isHostName(name.withoutFinalDot) ? (name, port) : nil
        }
        return isHostName(name) ? (name, port) : nil
    }

    /// 1 to 5 digits up to 65535.
    static func parsePort(_ digits: ArraySlice<UInt8>) -> UInt16? {
        guard (1...5).contains(digits.count), digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return UInt16(String(decoding: digits, as: UTF8.self))
    }

    /// A DNS name or an IPv4 address. If the last label is numeric, it must be a full IPv4 address (`127.1` is not).
    static func isHostName(_ name: String) -> Bool {
        guard (1...253).contains(name.utf8.count) else { return false }
        let labels = name.split(separator: ".", omittingEmptySubsequences: false)
        let wellFormed = labels.allSatisfy { label in
            (1...63).contains(label.utf8.count) && label.utf8.first != 0x2D && label.utf8.last != 0x2D
                && label.utf8.allSatisfy { isLetterOrDigit($0) || $0 == 0x2D || $0 == 0x5F }
        }
        guard wellFormed, let last = labels.last else { return false }
        let looksNumeric = last.utf8.allSatisfy { (0x30...0x39).contains($0) } || last.hasPrefix("0x")
        return !looksNumeric || addressBytes(name)?.count == 4
    }

    /// Lower-case letters and digits.
    static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        (0x61...0x7A).contains(byte) || (0x30...0x39).contains(byte)
    }

    /// `127.0.0.0/8`, `::1` and `localhost`.
    static func isLoopback(_ host: String) -> Bool {
        if host == "localhost" { return true }
        guard let bytes = addressBytes(host) else { return false }
        return bytes.count == 4 ? bytes[0] == 127 : bytes == [UInt8](repeating: 0, count: 15) + [1]
    }

    /// The 4 or 16 bytes of an address literal, in network order.
    static func addressBytes(_ text: String) -> [UInt8]? {
        guard text.utf8.count <= 45 else { return nil }
        var bytes = [UInt8](repeating: 0, count: 16)
        let family = text.utf8.contains(0x3A) ? AF_INET6 : AF_INET
        let parsed = unsafe bytes.withUnsafeMutableBytes { unsafe inet_pton(family, text, $0.baseAddress) }
        guard parsed == 1 else { return nil }
        return family == AF_INET ? Array(bytes.prefix(4)) : bytes
    }
}

extension String {
    /// A host name as it is in `Host` and in certificates: without the dot of the root.
    package var withoutFinalDot: String { hasSuffix(".") ? String(dropLast()) : self }
}
