/// Base32 without padding (RFC 4648 §6), in one of several alphabets.
@frozen package enum Base32 {
    /// An alphabet of 32 characters.
    @frozen package struct Alphabet: Sendable {
        package let characters: [UInt8]

        private init(_ text: String) { characters = Array(text.utf8) }

        /// That of RFC 4648 in lower case.
        package static let lowercase = Alphabet("abcdefghijklmnopqrstuvwxyz234567")
        /// Crockford's, without letters that look like others.
        package static let crockford = Alphabet("0123456789ABCDEFGHJKMNPQRSTVWXYZ")
    }

    /// Encodes bytes; bits that do not fill a last character are left out.
    /// - Parameter zeros: how many zero bits precede the bytes, fewer than 5.
    package static func encode(
        _ bytes: some Sequence<UInt8>, in alphabet: Alphabet, afterZeroBits zeros: UInt32 = 0
    ) -> String {
        var text: [UInt8] = []
        var bits: UInt32 = 0
        var bitCount = zeros
        for byte in bytes {
            bits = bits &<< 8 | UInt32(byte)
            bitCount &+= 8
            while bitCount >= 5 {
                bitCount &-= 5
                text.append(alphabet.characters[Int(bits &>> bitCount & 31)])
            }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
