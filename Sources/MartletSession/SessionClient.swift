/// The client of a session as reported by itself and not verified, so that its owner recognizes it in a list.
package struct SessionClient: Sendable, Equatable {
    /// The device name that the client sent.
    package var deviceName: String?
    package var userAgent: String?
    /// The client's address: 16 bytes (IPv4-mapped), or empty.
    package var address: [UInt8]

    package init(deviceName: String? = nil, userAgent: String? = nil, address: [UInt8] = []) {
        (self.deviceName, self.userAgent, self.address) = (deviceName, userAgent, address)
    }
}

/// The address that a session was last used from, as stored: a keyed hash, followed by the sealed address.
///
/// Stores compare hashes to detect a changed address, and learn nothing else from them. A login stores the hash alone,
/// because the sealed listing contains the address.
struct SealedAddress {
    static let hashLength = 4

    /// The hash and the ciphertext; empty without an address.
    let bytes: [UInt8]

    static func hash(of stored: [UInt8]) -> ArraySlice<UInt8> { stored.prefix(hashLength) }

    /// The short form: 4 bytes for an IPv4-mapped address.
    static func packed(_ address: [UInt8]) -> [UInt8] { address.starts(with: mapped) ? Array(address[12...]) : address }

    /// The 16-byte form; `nil` for any other length.
    static func unpacked(_ bytes: [UInt8]) -> [UInt8]? {
        switch bytes.count {
        case 4: mapped + bytes
        case 16: bytes
        default: nil
        }
    }

    private static let mapped: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]
}
