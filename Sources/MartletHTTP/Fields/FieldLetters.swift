/// A field name reduced to its letters and digits, in lower case.
///
/// Upstreams that turn names into variables (CGI) ignore letter case and the difference between `-`, `_` and other
/// characters. Two names with the same letters and digits are treated as equal.
package enum FieldLetters {
    /// The lower-case letter or the digit, or 0 for every other byte.
    @inline(__always)
    static func of(_ byte: UInt8) -> UInt8 {
        let lower = byte | 0x20
        if lower &- 0x61 < 26 { return lower }
        return byte &- 0x30 < 10 ? byte : 0
    }

    /// The letters and digits of a name.
    package static func of(_ name: String) -> [UInt8] { name.utf8.map { of($0) }.filter { $0 != 0 } }

    /// Whether the letters and digits of a name are those of `text`, which has no others.
    static func spell(_ text: Span<UInt8>, _ bytes: Span<UInt8>, _ name: ByteRange) -> Bool {
        var offset = 0
        for index in name.bounds {
            let letter = of(bytes[index])
            if letter == 0 { continue }
            guard offset < text.count, text[offset] == letter else { return false }
            offset &+= 1
        }
        return offset == text.count
    }

    /// Whether a name is an `X-Auth-*` name, with any characters in place of its dashes.
    ///
    /// Without a separator after `Auth` there must be none before it either: `XAuthRoles` matches, `X-Authority` does
    /// not.
    static func isAuth(_ bytes: Span<UInt8>, _ name: ByteRange) -> Bool {
        guard let x = next(bytes, name, from: name.start), of(bytes[x]) == UInt8(ascii: "x"),
            let end = end(of: "auth", bytes, name, from: x &+ 1), end < name.end
        else { return false }
        return of(bytes[end]) == 0 || of(bytes[x &+ 1]) != 0
    }

    /// Whether the letters of a name begin with those of `X-Forwarded`.
    static func areForwarded(_ bytes: Span<UInt8>, _ name: ByteRange) -> Bool {
        end(of: "xforwarded", bytes, name, from: name.start) != nil
    }

    /// The offset of the next letter or digit.
    private static func next(_ bytes: Span<UInt8>, _ name: ByteRange, from start: Int) -> Int? {
        var index = start
        while index < name.end, of(bytes[index]) == 0 { index &+= 1 }
        return index < name.end ? index : nil
    }

    /// The offset after `text`, if its letters come next.
    private static func end(of text: StaticString, _ bytes: Span<UInt8>, _ name: ByteRange, from start: Int) -> Int? {
        var index = start
        for offset in 0..<text.utf8CodeUnitCount {
            guard let found = next(bytes, name, from: index), of(bytes[found]) == text.byte(at: offset) else {
                return nil
            }
            index = found &+ 1
        }
        return index
    }
}

/// A lookup key: how many letters and digits a name has, and their hash.
struct FieldLetterKey {
    private(set) var hash = NameHash()
    private(set) var count = 0
    private(set) var first: UInt8 = 0
    private(set) var last: UInt8 = 0

    init(_ bytes: Span<UInt8>, _ name: ByteRange) {
        var word: UInt64 = 0
        for index in name.bounds {
            let letter = FieldLetters.of(bytes[index])
            if letter == 0 { continue }
            if count == 0 { first = letter }
            last = letter
            word |= UInt64(letter) &<< (UInt64(truncatingIfNeeded: count & 7) &* 8)
            count &+= 1
            if count & 7 == 0 {
                hash.mix(word)
                word = 0
            }
        }
        if count & 7 != 0 { hash.mix(word) }
    }
}
