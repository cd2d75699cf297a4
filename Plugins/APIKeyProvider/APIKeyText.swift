internal import MartletCore
internal import MartletCrypto

/// An API key as clients present it: `mak_`, its id, its secret and a checksum, in lower-case hexadecimal digits.
///
/// The checksum shows a key that was mistyped or cut off, so that it costs no lookup; it proves nothing. The secret has
/// 256 random bits, which is why a fast hash of the key is enough to store.
package struct APIKeyText: Sendable {
    package static let prefix = OwnToken.apiKey.prefix
    private static let idBytes = 8
    private static let secretBytes = 32
    private static let checksumBytes = 4
    private static let idEnd = prefix.utf8.count + 2 * idBytes
    private static let checksumStart = idEnd + 2 * secretBytes
    private static let length = checksumStart + 2 * checksumBytes

    /// The public part, which names the key in lists and logs.
    package let id: String
    /// SHA-256 of the whole key.
    let digest: [UInt8]

    /// Why a text is not a key.
    package enum ParseError: Error {
        /// It has another form.
        case malformed
        /// It has the form of a key, but not its checksum.
        case checksum
    }

    package init(_ bytes: [UInt8]) throws(ParseError) {
        guard bytes.count == Self.length, bytes.starts(with: Self.prefix.utf8),
            bytes.dropFirst(Self.prefix.utf8.count).allSatisfy(Self.isDigit)
        else { throw .malformed }
        let checksum = String(decoding: bytes[Self.checksumStart...], as: UTF8.self)
        guard checksum == Self.checksum(bytes[..<Self.checksumStart]) else { throw .checksum }
        id = String(decoding: bytes[Self.prefix.utf8.count..<Self.idEnd], as: UTF8.self)
        digest = SHA256.digest(bytes)
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }

    private static func checksum(_ bytes: ArraySlice<UInt8>) -> String {
        Hexadecimal.text(SHA256.digest(Array(bytes)).prefix(checksumBytes))
    }

    /// A key that was just made.
    struct New {
        let id: String
        let text: Secret
        let digest: [UInt8]
    }

    /// Makes a key.
    /// - Parameter id: that of a key which it replaces; `nil` for a new one.
    static func make(id: String? = nil) throws(CryptoError) -> New {
        let id = if let id { id } else { Hexadecimal.text(try RandomBytes.make(idBytes)) }
        var bytes = Array(prefix.utf8) + id.utf8
        bytes += Hexadecimal.text(try RandomBytes.make(secretBytes)).utf8
        bytes += checksum(bytes[...]).utf8
        return New(id: id, text: Secret(bytes), digest: SHA256.digest(bytes))
    }
}
