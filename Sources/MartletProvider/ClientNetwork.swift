public import MartletCore

/// The network of a client, the unit of throttling: an IPv4 address, or the /64 of an IPv6 address.
///
/// Behind trusted proxies it is the client address that they report.
@frozen public struct ClientNetwork: Hashable, Sendable, CustomStringConvertible {
    /// The first half of the address.
    private let high: UInt64
    /// The second half of an IPv4-mapped address; 0 for IPv6.
    private let low: UInt64

    /// - Parameter address: 16 bytes in network order, IPv4 mapped; `nil` if there are not 16.
    public init?(address: [UInt8]) {
        guard address.count == 16 else { return nil }
        high = address[..<8].reduce(0) { $0 << 8 | UInt64($1) }
        let rest = address[8...].reduce(0) { $0 << 8 | UInt64($1) }
        low = high == 0 && rest >> 32 == 0xFFFF ? rest : 0
    }

    public var description: String {
        guard low == 0 else {
            return stride(from: 24, through: 0, by: -8).map { String(UInt8(truncatingIfNeeded: low >> $0)) }
                .joined(separator: ".")
        }
        return stride(from: 48, through: 0, by: -16).map { String(UInt16(truncatingIfNeeded: high >> $0), radix: 16) }
            .joined(separator: ":") + "::/64"
    }
}

// MARK: - Blocks

/// A block of addresses that share a budget of unauthenticated attempts.
///
/// A client with one address of a block is likely to have others.
@frozen package enum NetworkBlock: Hashable, Sendable {
    /// One IPv4 address.
    case address(UInt32)
    /// The /24 of an IPv4 address, as its first three bytes.
    case addresses256(UInt32)
    /// The /64, /56 or /48 of an IPv6 address, as its first bits.
    case subnet64(UInt64)
    case subnet56(UInt64)
    case subnet48(UInt64)
    /// All clients whose address is unknown.
    case unknown
}

extension ClientNetwork {
    /// The blocks that contain a network, the smallest first.
    package var blocks: [NetworkBlock] {
        guard low == 0 else {
            let address = UInt32(truncatingIfNeeded: low)
            return [.address(address), .addresses256(address >> 8)]
        }
        return [.subnet64(high), .subnet56(high >> 8), .subnet48(high >> 16)]
    }

    /// The owner of its jobs in a ``ThreadPool``: an IPv4 address within its /24, a /64 within its /48.
    public var workOwner: WorkOwner {
        // IPv4 groups have the first bit set, which is 0 in IPv6 groups because of the shift.
        low == 0 ? WorkOwner(group: high >> 16, member: high) : WorkOwner(group: 1 << 63 | low >> 8, member: low)
    }
}
