public import MartletCore

/// The network that a client calls from, as throttles count it: an IPv4 address, or the /64 of an IPv6 one.
///
/// Where trusted proxies stand in front, it is the client's as they tell it.
public struct ClientNetwork: Hashable, Sendable, CustomStringConvertible {
    /// The first half of the address.
    private let high: UInt64
    /// The second half of a mapped IPv4 address; 0 for the network of an IPv6 one.
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

// MARK: - What is counted together

/// Addresses that are counted together when attempts without a proof are.
///
/// Whoever has one address of a block is likely to have others of it.
package enum NetworkBlock: Hashable, Sendable {
    /// One IPv4 address.
    case address(UInt32)
    /// The /24 of an IPv4 address, as its first three bytes.
    case addresses256(UInt32)
    /// The /64, /56 or /48 of an IPv6 address, as its first bits.
    case subnet64(UInt64)
    case subnet56(UInt64)
    case subnet48(UInt64)
    /// Everybody whose address is not known.
    case unknown
}

extension ClientNetwork {
    /// The blocks of a network, the smallest first.
    package var blocks: [NetworkBlock] {
        guard low == 0 else {
            let address = UInt32(truncatingIfNeeded: low)
            return [.address(address), .addresses256(address >> 8)]
        }
        return [.subnet64(high), .subnet56(high >> 8), .subnet48(high >> 16)]
    }

    /// Whose work it is, for ``WorkPool``: an IPv4 address within its /24, a /64 within its /48.
    public var workOwner: WorkOwner {
        // No IPv6 group has the first bit: it has been shifted in.
        low == 0 ? WorkOwner(group: high >> 16, member: high) : WorkOwner(group: 1 << 63 | low >> 8, member: low)
    }
}
