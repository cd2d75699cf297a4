/// Who holds a session, for its owner to know it again in a list: told by the client, and proven by nothing.
package struct SessionClient: Sendable, Equatable {
    /// What the client calls its device.
    package var deviceName: String?
    package var userAgent: String?
    /// Where the request came from: 16 bytes (IPv4 mapped), or empty.
    package var address: [UInt8]

    package init(deviceName: String? = nil, userAgent: String? = nil, address: [UInt8] = []) {
        self.deviceName = deviceName
        self.userAgent = userAgent
        self.address = address
    }
}

/// The address that a session was last used from, as stores keep it.
///
/// A mark, and behind it the sealed address. Stores compare marks to see whether the address is another one, and learn
/// no more from them; at a login there is the mark alone, because the sealed listing has that address.
struct AddressNote {
    static let markLength = 8

    /// The mark and what is sealed; empty where there is no address.
    let bytes: [UInt8]

    /// The mark of the address.
    static func mark(of note: [UInt8]) -> ArraySlice<UInt8> { note.prefix(markLength) }

    /// Without the zeros of a mapped IPv4 address.
    static func packed(_ address: [UInt8]) -> [UInt8] { address.starts(with: mapped) ? Array(address[12...]) : address }

    /// 16 bytes again; `nil` for what is no address.
    static func unpacked(_ bytes: [UInt8]) -> [UInt8]? {
        switch bytes.count {
        case 4: mapped + bytes
        case 16: bytes
        default: nil
        }
    }

    private static let mapped: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]
}
