/// Comparisons of bytes with texts, without copies.
extension Span where Element == UInt8 {
    /// Whether the bytes are those of a text.
    func spells(_ text: String) -> Bool {
        guard count == text.utf8.count else { return false }
        var index = 0
        for byte in text.utf8 {
            guard self[index] == byte else { return false }
            index &+= 1
        }
        return true
    }

    /// Whether the bytes are those of a text in any case of ASCII letters.
    func spellsIgnoringCase(_ text: String) -> Bool {
        guard count == text.utf8.count else { return false }
        var index = 0
        for byte in text.utf8 {
            guard self[index].loweredASCII == byte.loweredASCII else { return false }
            index &+= 1
        }
        return true
    }
}

extension UInt8 {
    /// The byte with an upper-case ASCII letter made lower case.
    var loweredASCII: UInt8 { (0x41...0x5A).contains(self) ? self | 0x20 : self }
}
