/// A field name as its letters and digits, in lower case: what is left when nobody minds what stands between them.
///
/// Upstreams that turn names into variables lose letter case and the difference between `-`, `_` and other characters; some
/// lose more. Two names with the same letters and digits are one name here.
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

    /// Whether a name is an `X-Auth-*` name, whatever stands in the place of its dashes.
    ///
    /// Where nothing stands behind the letters of `Auth` it is one only if there is nothing before them either: `XAuthRoles` is
    /// such a name, `X-Authority` is a name of its own.
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

    /// Where the next letter or digit stands.
    private static func next(_ bytes: Span<UInt8>, _ name: ByteRange, from start: Int) -> Int? {
        var index = start
        while index < name.end, of(bytes[index]) == 0 { index &+= 1 }
        return index < name.end ? index : nil
    }

    /// Behind the last of some letters, if they come next.
    private static func end(of text: StaticString, _ bytes: Span<UInt8>, _ name: ByteRange, from start: Int) -> Int? {
        var index = start
        for offset in 0..<text.utf8CodeUnitCount {
            guard let place = next(bytes, name, from: index), of(bytes[place]) == text.byte(at: offset) else {
                return nil
            }
            index = place &+ 1
        }
        return index
    }
}

/// What a list of names is searched by: how many letters and digits a name has, and their hash.
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
