package import MartletCore
internal import MartletCrypto

/// A sortable unique identifier (ULID): 48 bits of milliseconds since 1970 and 80 random bits, as 26 characters of
/// Crockford's base32.
package struct ULID: Sendable, Hashable, CustomStringConvertible {
    /// The number of characters.
    package static let length = 26

    package let description: String

    /// Creates an identifier.
    /// - Parameter milliseconds: the time since 1970; negative times count as 0.
    /// - Throws: `events.no_entropy` if no random bytes are available.
    package init(at milliseconds: Int64) throws(StoreError) {
        guard let random = try? RandomBytes.make(10) else {
            throw StoreError(code: .eventsNoEntropy, message: "no random bytes available")
        }
        self.init(at: milliseconds, random: random)
    }

    /// Creates an identifier from its parts; missing random bytes count as 0.
    init(at milliseconds: Int64, random: [UInt8]) {
        let time = UInt64(min(max(milliseconds, 0), 0xFFFF_FFFF_FFFF))
        var bytes = (0..<6).map { UInt8(truncatingIfNeeded: time &>> (40 - 8 * UInt64($0))) }
        bytes += random.prefix(10)
        bytes += [UInt8](repeating: 0, count: max(16 - bytes.count, 0))
        // 130 bits for 128: the first character has three of the time only.
        description = Base32.encode(bytes, in: .crockford, afterZeroBits: 2)
    }

    /// Parses a text; small letters are accepted, `nil` if it is not an identifier.
    package init?(_ text: String) {
        let capitals = text.utf8.map { (0x61...0x7A).contains($0) ? $0 & 0xDF : $0 }
        guard capitals.count == ULID.length, capitals.allSatisfy(Base32.Alphabet.crockford.characters.contains),
            (0x30...0x37).contains(capitals[0])
        else { return nil }
        description = String(decoding: capitals, as: UTF8.self)
    }
}
