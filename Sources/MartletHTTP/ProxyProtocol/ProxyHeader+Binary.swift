package import MartletCore

/// Version 2: signature, version and command, family and protocol, length, addresses, extensions.
extension ProxyHeader {
    /// The bytes before the addresses.
    private static let fixedBytes = 16
    /// Both addresses of Unix sockets, 108 bytes each.
    private static let unixBytes = 216

    static func parseBinary(_ bytes: Span<UInt8>) -> Outcome {
        for index in 0..<min(signature.count, bytes.count) where bytes[index] != signature[index] {
            return .failure(.badSignature)
        }
        // Fail on the first invalid byte.
        if bytes.count > 12 {
            guard bytes[12] >> 4 == 2 else { return .failure(.badVersion) }
            guard bytes[12] & 0x0F < 2 else { return .failure(.badCommand) }
        }
        guard bytes.count > 13 else { return .needMore }
        let isLocal = bytes[12] & 0x0F == 0
        let family = isLocal ? 0 : bytes[13]
        guard let addressBytes = addressBytes(of: family) else { return .failure(.badFamily) }
        guard bytes.count >= fixedBytes else {
            if bytes.count == 15, bytes[14] > UInt8(longest >> 8) { return .failure(.badLength) }
            return .needMore
        }
        let length = Int(bytes[14]) << 8 | Int(bytes[15])
        let end = fixedBytes &+ length
        guard end <= longest, length >= addressBytes else { return .failure(.badLength) }
        guard bytes.count >= end else { return .needMore }
        // Without a family the offset of the extensions is unknown.
        guard family != 0 else { return .complete(count: end, peer: isLocal ? .local : .unknown) }
        if let failure = check(bytes.extracting(0..<end), extensionsFrom: fixedBytes &+ addressBytes) {
            return .failure(failure)
        }
        return .complete(count: end, peer: peer(in: bytes, family: family))
    }

    /// The length of a family's addresses; `nil` for an invalid family.
    ///
    /// The upper half is the family (unspecified, IPv4, IPv6, Unix), the lower one the transport (unspecified, stream,
    /// datagram); both are unspecified or neither.
    private static func addressBytes(of family: UInt8) -> Int? {
        switch family {
        case 0x00: 0
        case 0x11, 0x12: 12
        case 0x21, 0x22: 36
        case 0x31, 0x32: unixBytes
        default: nil
        }
    }

    private static func peer(in bytes: Span<UInt8>, family: UInt8) -> Peer {
        func field(_ range: Range<Int>) -> [UInt8] { range.map { bytes[$0] } }
        func port(_ index: Int) -> UInt16 { UInt16(bytes[index]) << 8 | UInt16(bytes[index &+ 1]) }
        switch family {
        case 0x11: return .address(Address(ipv4: field(16..<20), port: port(24)))
        case 0x21: return .address(Address(bytes: field(16..<32), port: port(48)))
        // Unix socket paths and datagram addresses are not used.
        default: return .unknown
        }
    }

    // MARK: Extensions

    /// A CRC-32C of the whole header, with its own field zeroed.
    private static let checksumType: UInt8 = 0x03

    /// Walks over the extensions: a type, a length of two bytes, and a value each.
    private static func check(_ header: Span<UInt8>, extensionsFrom start: Int) -> Failure? {
        var offset = start
        var checksum: Int?
        while offset < header.count {
            guard header.count &- offset >= 3 else { return .badExtension }
            let length = Int(header[offset &+ 1]) << 8 | Int(header[offset &+ 2])
            guard header.count &- offset &- 3 >= length else { return .badExtension }
            if header[offset] == checksumType {
                guard length == 4, checksum == nil else { return .badExtension }
                checksum = offset &+ 3
            }
            offset &+= 3 &+ length
        }
        guard let checksum else { return nil }
        var sent: UInt32 = 0
        for index in checksum..<(checksum &+ 4) { sent = sent << 8 | UInt32(header[index]) }
        return sent == crc32c(header, zeroing: checksum) ? nil : .badChecksum
    }

    /// CRC-32C (Castagnoli), bit by bit: headers are short, and few have a checksum.
    static func crc32c(_ bytes: Span<UInt8>, zeroing offset: Int) -> UInt32 {
        var register = UInt32.max
        for index in bytes.indices {
            register ^= index >= offset && index < offset &+ 4 ? 0 : UInt32(bytes[index])
            for _ in 0..<8 { register = register >> 1 ^ (register & 1 == 0 ? 0 : 0x82F6_3B78) }
        }
        return ~register
    }

    // MARK: Writing

    /// Appends a version 2 header for a proxied connection.
    ///
    /// `LOCAL` when an end has no IP address, such as a Unix socket. A mix of IPv4 and IPv6 is written as IPv6.
    package static func write(client: Address?, server: Address?, into buffer: inout ByteBuffer) {
        buffer.append(signature)
        guard let client, let server, client.bytes.count == 16, server.bytes.count == 16 else {
            buffer.append([0x20, 0x00, 0x00, 0x00])
            return
        }
        let isIPv4 = client.isIPv4 && server.isIPv4
        buffer.append([0x21, isIPv4 ? 0x11 : 0x21, 0x00, isIPv4 ? 12 : 36])
        for end in [client, server] { buffer.append(isIPv4 ? Array(end.bytes.suffix(4)) : end.bytes) }
        for end in [client, server] {
            buffer.append([UInt8(truncatingIfNeeded: end.port >> 8), UInt8(truncatingIfNeeded: end.port)])
        }
    }
}
